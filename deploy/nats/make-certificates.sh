#!/bin/sh
# Makes a small certificate authority for one server, and certificates that it signs. Needs openssl.
#
#   sh make-certificates.sh FOLDER HOST [CLIENT...]
#
# FOLDER/ca.pem goes to every machine (--ca). FOLDER/cert.pem and key.pem stay with the server, whose address (a name or an IP)
# is HOST. Each CLIENT gets FOLDER/CLIENT.pem and CLIENT-key.pem, for a server that asks for certificates. FOLDER/ca-key.pem signs
# further ones: keep it off all of these machines. What is there already is kept. All are good for a year.
set -eu
folder=$1
host=$2
shift 2
mkdir -p "$folder"
cd "$folder"
umask 077

make_key() {
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1" 2> /dev/null
}

# sign NAME KEY EXTENSIONS: a certificate NAME.pem for KEY.
sign() {
  printf '%s\n' "basicConstraints = critical, CA:FALSE" "$3" > "$1.ext"
  openssl req -new -key "$2" -subj "/CN=$1" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 365 -extfile "$1.ext" -out "$1.pem" 2> /dev/null
  rm "$1.csr" "$1.ext"
  chmod 644 "$1.pem"
}

if [ ! -e ca.pem ]; then
  make_key ca-key.pem
  openssl req -x509 -new -key ca-key.pem -days 365 -subj "/CN=Cria's NATS" -out ca.pem
  chmod 644 ca.pem
fi
if [ ! -e cert.pem ]; then
  case $host in
    *:*) name="IP:$host" ;;
    *[!0-9.]*) name="DNS:$host" ;;
    *) name="IP:$host" ;;
  esac
  make_key key.pem
  sign cert key.pem "subjectAltName = $name"
fi
for client in "$@"; do
  if [ ! -e "$client.pem" ]; then
    make_key "$client-key.pem"
    sign "$client" "$client-key.pem" "extendedKeyUsage = clientAuth"
  fi
done
