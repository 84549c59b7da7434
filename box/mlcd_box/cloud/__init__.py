"""What runs inside a box: AWS as moto imitates it, with real machines and processes behind it.

ec2.py           machines behind moto's EC2 instances, with states that take time
machine.py       a machine: namespaces, a root of overlays, an sshd
user_data.py     a machine's first boot: the part of cloud-init that SkyPilot uses
market.py        the spot market, which can follow a recorded trace
faults.py        injected faults: no capacity, quotas, slow boots, throttling
metadata.py      169.254.169.254, where a machine asks who it is and whether it will be preempted
traffic.py       requests on their way to moto: throttled or refused; S3 requests and bytes are counted
functions/       Lambda: processes under control groups, besides moto
box_api.py       /box/...: the test API of the cloud
__main__.py      the network, the account and the server
"""
