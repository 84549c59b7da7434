"""What runs inside a box: AWS as moto answers it, with machines behind it.

ec2.py           moto's instances, with machines behind them; states that take their time
machine.py       a machine: namespaces, a root of overlays, an sshd
user_data.py     what a machine does at its first boot
faults.py        what is to go wrong: no capacity, quotas, slow boots, throttling
metadata.py      169.254.169.254, which tells a machine who it is and when it will be taken back
traffic.py       requests on their way: throttled, refused; counted: to S3, and bytes that leave a region
functions/       Lambda, beside moto: processes under control groups behind its functions
control.py       /box/...: what tests ask and order
__main__.py      the network, an account as a real one is, and the server
"""
