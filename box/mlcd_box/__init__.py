"""A cloud in a box: real SkyPilot and ssh, real Lithops; machines and functions that come, fail and are billed.

A box is a network namespace without a way out. In it, moto answers as EC2, S3 and IAM (`cloud/`), and each instance
that it starts is a machine: namespaces of its own, a Debian root of overlays, an sshd at the address that moto gave
out. Beside moto answers Lambda (`cloud/functions/`): each environment is a process under control groups. SkyPilot and
Lithops are the ordinary packages; they only have another address for AWS.

    cli.py              box up, exec, status, fail, interrupt, bill, down
    boxes.py            a box on this host: its folder, its processes
    image.py            what is built once for a version of SkyPilot: an environment and the machines' image
    offers.py           what the cloud sells: types, zones, prices
    skypilot_home.py    SkyPilot's and Lithops' home in a box: credentials, configuration, catalog
    events.py           what has happened in the cloud, one line each
    bill.py             the cloud's bill, made from the events by AWS's rules
    cloud/              what runs inside
    shell/              how a machine's file system is put together, and how it boots
"""
