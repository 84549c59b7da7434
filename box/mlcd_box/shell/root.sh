# Sourced. make_root ROOT LAYER IMAGE: a machine's file system at ROOT. Below are this host's /usr, /etc and /var, the
# image above them; what is written goes to LAYER. (An image is built with itself as the layer.)
make_root() {
  local root=$1 layer=$2 image=$3 folder lower
  mkdir -p "$root" "$layer" "$image/nothing"
  mount -t tmpfs -o mode=755 root "$root"
  for folder in usr etc var home; do
    mkdir -p "$root/$folder" "$layer/$folder" "$layer/work/$folder" "$image/$folder"
    lower=/$folder
    [ $folder = home ] && lower=$image/nothing
    [ "$layer" = "$image" ] || lower=$image/$folder:$lower
    mount -t overlay -o "lowerdir=$lower,upperdir=$layer/$folder,workdir=$layer/work/$folder" overlay "$root/$folder"
  done
  for folder in bin sbin lib lib64; do ln -s usr/$folder "$root/$folder"; done
  mkdir -p "$root"/{proc,sys,dev,run,tmp,root,mnt,opt}
  chmod 700 "$root/root"; chmod 1777 "$root/tmp"
  mount -t tmpfs -o mode=755 run "$root/run"; mkdir -p "$root/run/sshd" "$root/run/lock"
  mount -t tmpfs -o mode=755,dev dev "$root/dev"
  for folder in null zero full random urandom tty fuse; do
    [ -e /dev/$folder ] || continue
    touch "$root/dev/$folder"; mount --bind /dev/$folder "$root/dev/$folder"
  done
  mkdir -p "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"; ln -s /proc/self/fd "$root/dev/fd"
  ln -s /proc/self/fd/0 "$root/dev/stdin"; ln -s /proc/self/fd/1 "$root/dev/stdout"; ln -s /proc/self/fd/2 "$root/dev/stderr"
  mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
}
