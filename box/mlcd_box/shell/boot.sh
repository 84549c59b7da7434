# boot.sh BOX FOLDER ADDRESS ENDPOINT: a machine's boot, in its own namespaces; it ends when its first process does.
# FOLDER has what its user data says: user, keys, files/, first_boot.sh; and ssh_after_s, if it is to be slow.
set -eu
image=$1 folder=$2 address=$3 endpoint=$4
read -r _  # until the other end of eth0 is in place
. "$(dirname "$(readlink -f "$0")")/root.sh"
ip link set lo up; ip addr add "$address/16" dev eth0; ip link set eth0 up; ip route add 169.254.169.254 dev eth0
hostname "ip-${address//./-}"
root=$folder/root
make_root "$root" "$folder/layer" "$image"
mount -t proc proc "$root/proc"; mount -t sysfs -o ro sysfs "$root/sys"
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$(hostname)" > "$root/etc/hosts"
hostname > "$root/etc/hostname"; rm -f "$root/etc/resolv.conf"; : > "$root/etc/resolv.conf"
echo "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" > "$root/etc/environment"
user=$(cat "$folder/user") home=$root/home/$(cat "$folder/user")
mkdir -p "$home/.ssh" "$home/.aws"; cp "$folder/keys" "$home/.ssh/authorized_keys"; chmod 700 "$home/.ssh"
printf '[default]\nregion = us-east-1\nendpoint_url = %s\n' "$endpoint" > "$home/.aws/config"
chroot "$root" chown -R "$user:$user" "/home/$user/.ssh" "/home/$user/.aws"
cp -r "$folder/files/." "$root/"
install -m 755 "$folder/first_boot.sh" "$root/run/first_boot.sh"
cat > "$root/run/init" <<'I'
trap 'exit 0' TERM
bash /run/first_boot.sh </dev/null >/var/log/cloud-init-output.log 2>&1 &
# rclone, which SkyPilot mounts cached buckets with, takes the address of S3 from no variable of AWS's own. It signs what it
# uploads only over TLS, which S3 does not have here.
where="AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL RCLONE_S3_ENDPOINT=$AWS_ENDPOINT_URL RCLONE_S3_FORCE_PATH_STYLE=true"
where="$where RCLONE_S3_USE_UNSIGNED_PAYLOAD=true"
{ sleep "$SSH_AFTER_S"; exec /usr/sbin/sshd -D -e -o UsePAM=yes -o PidFile=/run/sshd.pid -o "SetEnv=$where"; } &
while :; do sleep 3600 & wait $!; done
I
exec env -i AWS_ENDPOINT_URL="$endpoint" SSH_AFTER_S="$(cat "$folder/ssh_after_s")" \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /bin/bash /run/init
