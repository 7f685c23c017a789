#!/usr/bin/env bash
# check.sh [NODE]: ask a running node for everything that a test may rely on, each with its time. The last line says
# "N passed, N failed"; the status is that of the checks.
. "$(dirname "$0")/env.sh" "$@"
if [ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$(cat "$D/ns.pid")/ns/net")" ]; then exec "$here/in" "$N" "$0" "$N"; fi
chart=$(mktemp -d)
trap 'rm -rf "$chart"' EXIT
mkdir "$chart/templates"
printf 'apiVersion: v2\nname: demo\nversion: 0.1.0\n' >"$chart/Chart.yaml"
echo 'replicas: 1' >"$chart/values.yaml"
cat >"$chart/templates/app.yaml" <<'X'
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, annotations: {kubeVersion: {{ .Capabilities.KubeVersion }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: app
        image: localhost/demo:test
        imagePullPolicy: IfNotPresent
        env: [{name: NAME, value: {{ .Release.Name }}}]
        readinessProbe: {httpGet: {path: /healthz, port: 8000}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80, targetPort: 8000}]}
X
passed=0 failed=0; k=kubectl
ok() { # ok NAME WANTED CMD...: CMD must print WANTED (a pattern) within 60 s
	local name=$1 want=$2 s=${EPOCHREALTIME/./} got; shift 2
	for _ in $(seq ${TRIES:-120}); do got=$("$@" 2>&1); [[ $got =~ $want ]] && { passed=$((passed + 1)); printf '%6d ms  ok    %s\n' $(( (${EPOCHREALTIME/./} - s) / 1000 )) "$name"; return; }; sleep 0.5; done
	failed=$((failed + 1)); echo "          FAIL  $name: $got"
}
get() { curl -sS --max-time 4 "$@"; }
api() { $k exec deploy/front -- python3 -c 'import ssl, urllib.request as u; d="/var/run/secrets/kubernetes.io/serviceaccount/"
print(u.urlopen(u.Request("https://kubernetes.default.svc/version", headers={"Authorization": "Bearer " + open(d + "token").read()}), context=ssl.create_default_context(cafile=d + "ca.crt"), timeout=5).read().decode())'; }
dns() { $k exec deploy/front -- python3 -c "import socket; print(socket.gethostbyname('$1'))"; }
thing() { echo "{\"apiVersion\": \"demo.example.com/v1\", \"kind\": \"Thing\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"replicas\": $1}}" | $k apply -f -; }
evict() { local p; p=$($k get pod -l app=web -o jsonpath='{.items[0].metadata.name}'); echo "{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$p\", \"namespace\": \"default\"}}" | $k create --raw "/api/v1/namespaces/default/pods/$p/eviction" -f -; }
forward() { $k port-forward svc/web 18081:80 > /dev/null 2>&1 & local p=$!; sleep 1; get http://127.0.0.1:18081/healthz; kill $p; }
helm_version() { helm template x "$chart" | grep kubeVersion; }
balance() { for _ in $(seq 20); do get http://10.96.0.50/whoami; done | grep -o 'web-[a-z0-9-]*' | sort -u | wc -l; }
$k apply -f "$here/check.yaml" > /dev/null || exit 1
ok "rollout of 2 replicas" "successfully rolled out" $k rollout status deploy/web --timeout=90s
ok "second Deployment" "successfully rolled out" $k rollout status deploy/front --timeout=90s
ok "ClusterIP" '"host"' get http://10.96.0.50/healthz
ok "ClusterIP balances over both" '^2$' balance
ok "NodePort" '"host"' get http://10.77.0.1:30080/healthz
ok "Service name from the node" '"host"' get http://web.default.svc.cluster.local/healthz
ok "short Service name from the node" '"host"' get http://web/healthz
ok "Service name in a pod" '^10\.96\.0\.50$' dns web
ok "full Service name in a pod" '^10\.96\.0\.50$' dns web.default.svc.cluster.local
TRIES=3 ok "outside name is refused" 'not known' dns example.com
ok "pod calls another by Service name" '"answer": \{"host": "web-' get 'http://front/call?url=http://web/whoami'
ok "pod asks the API by name with its token" 'v1\.' api
ok "exec as the given user" 'uid=10001 gid=10001' $k exec deploy/web -- id
ok "logs" 'GET /healthz' $k logs deploy/web --tail=3
ok "port-forward" '"host"' forward
ok "CRD" 'condition met' $k wait --for=condition=Established crd/things.demo.example.com --timeout=20s
ok "CEL rule refuses" 'too many' thing 9
ok "CEL rule admits" 'created|configured|unchanged' thing 2
ok "PDB refuses an eviction" 'disruption budget' evict
$k create job once --image=localhost/demo:test -- python3 -c "import urllib.request as u; print(u.urlopen('http://web/whoami', timeout=5).read())" > /dev/null
ok "Job" 'condition met' $k wait --for=condition=Complete job/once --timeout=60s
ok "Job's log" 'web-' $k logs job/once
ok "Helm knows the cluster's version" 'v1\.3[6-9]' helm_version
ok "Helm install" 'STATUS: deployed' helm upgrade --install hello "$chart" --wait --timeout 60s
ok "Helm release answers by name" '"name": "hello"' get http://hello/whoami
ok "Helm upgrade" 'REVISION: [2-9]' helm upgrade hello "$chart" --set replicas=2 --wait --timeout 60s
ok "Helm uninstall" 'uninstalled' helm uninstall hello --wait
$k set env deploy/web X=1 > /dev/null
ok "rolling update" "successfully rolled out" $k rollout status deploy/web --timeout=90s
ok "stats/summary" "$N" $k get --raw "/api/v1/nodes/$N/proxy/stats/summary"
if [ -f "$D/netpol.pid" ]; then
	$k apply -f "$here/netpol.yaml" > /dev/null
	ok "NetworkPolicy refuses web -> front" 'refused' $k exec deploy/web -- python3 -c "import urllib.request as u; u.urlopen('http://front/whoami', timeout=3)"
	ok "NetworkPolicy admits front -> web" '"answer"' get 'http://front/call?url=http://web/whoami'
	$k delete -f "$here/netpol.yaml" > /dev/null
fi
TRIES=160 ok "CronJob, on the minute" '^20' $k get cronjob tick -o jsonpath='{.status.lastSuccessfulTime}'
$k get events --field-selector type=Warning -o custom-columns=R:.reason,M:.message | sort | uniq -c | head -8
echo "$passed passed, $failed failed"; [ $failed = 0 ]
