#!/bin/bash
# build.sh IMAGE WHEEL WHEEL_HASH REQUIREMENTS: the machines' image, from the ordinary package sources. In a mount namespace of its own.
set -eu
image=$1 wheel=$2 hash=$3 needs=$4
here=$(dirname "$(readlink -f "$0")")
. "$here/root.sh"
make_root /mnt "$image" "$image"
mount --bind /proc /mnt/proc
for folder in /opt /root/.config; do  # where pip may find its settings and packages
  if [ -d $folder ]; then mkdir -p "/mnt$folder"; mount --bind -o ro $folder "/mnt$folder"; fi
done
# A resolv.conf that is a link leads into /run, which is empty here.
cat /etc/resolv.conf > /tmp/resolv.$$ 2>/dev/null && mount --bind /tmp/resolv.$$ /mnt/etc/resolv.conf || true
mkdir -p /mnt/tmp/guest; cp "$wheel" "$here"/guest/* /mnt/tmp/guest/; cp "$needs" /mnt/tmp/guest/requirements.txt
chroot /mnt /bin/bash -eux /tmp/guest/provision.sh "$(basename "$wheel")" "$hash"
rm -rf "$image/work" /tmp/resolv.$$
