"""A cloud in a box, for tests: real SkyPilot, ssh and Lithops on an imitation of AWS that runs on one host.

A box is a network namespace without any outside connection. In it, moto acts as EC2, S3 and IAM (`cloud/`). Behind
each EC2 instance is a machine: its own namespaces, a Debian root of overlays, an sshd at the address from moto.
Lambda (`cloud/functions/`) runs beside moto: each environment is a process with control groups. SkyPilot and Lithops
are the ordinary packages, configured with another address for AWS.

    cli.py              the command `box`: up, exec, status, fail, interrupt, bill, down, test
    boxes.py            a box on this host: its folder and its processes
    image.py            the image of the machines, built once for each version of SkyPilot
    offers.py           machine types, zones and prices of the cloud
    skypilot_home.py    the home folder in a box: credentials, configuration and catalog of SkyPilot and Lithops
    events.py           the cloud's event log
    bill.py             the cloud's bill, computed from the events by AWS's rules
    scenarios/          the scenarios of `box test`
    harness.py          what scenarios use: a box with MLCD in it, and the comparison of ledger and bill
    run_scenarios.py    runs scenarios, each in its own box, and prints the table
    startup_times.py    how long launches took to start
    functions_job.py    a job on functions, for scenarios
    cloud/              what runs inside the box
    shell/              scripts: a machine's file system, its boot, the image
"""
