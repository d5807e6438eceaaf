{{- define "sallyport.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "sallyport.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "sallyport.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sallyport.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sallyport.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "sallyport.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sallyport.selector" -}}
app.kubernetes.io/name: {{ include "sallyport.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sallyport.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sallyport.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sallyport.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The servers that are turned on, as a JSON object by name. */}}
{{- define "sallyport.servers" -}}
{{- $servers := dict -}}
{{- $all := list (dict "name" "auth" "port" 9000 "url" .Values.urls.issuer) (dict "name" "fhir" "port" 8080 "url" .Values.urls.fhir) (dict "name" "app" "port" 8081 "url" .Values.urls.app) -}}
{{- range $server := $all -}}
{{- if (get $.Values $server.name).enabled -}}
{{- $_ := set $servers $server.name $server -}}
{{- end -}}
{{- end -}}
{{- toJson $servers -}}
{{- end -}}

{{/*
Variables of all servers that are not secret, as an object of JSON. The settings of the user take precedence. The migration needs
no policy: its Job runs before the ConfigMap of a policy is there.
*/}}
{{- define "sallyport.settings" -}}
{{- $allowsHttp := get .Values.settings "SMART_ALLOW_HTTP" | toString | eq "true" -}}
{{- if and (hasPrefix "http:" .Values.fhir.upstreamUrl) (not $allowsHttp) -}}
{{- fail "fhir.upstreamUrl is not https: set settings.SMART_ALLOW_HTTP to true if patient data may cross the cluster's network unencrypted" -}}
{{- end -}}
{{- $own := dict
  "SMART_ISSUER_URL" .Values.urls.issuer
  "SMART_FHIR_BASE_URL" .Values.urls.fhir
  "SMART_APP_URL" .Values.urls.app
  "SMART_CLIENT_LAUNCH_URL" (default (printf "%s/launch" .Values.urls.app) .Values.urls.launch)
  "SMART_FHIR_UPSTREAM_URL" .Values.fhir.upstreamUrl
  "SMART_AUTH_PORT" "9000"
  "SMART_FHIR_PORT" "8080"
  "SMART_APP_PORT" "8081"
  "SMART_DATA_DIR" "/var/lib/sallyport"
  "SMART_SAMPLE_PATIENTS" "0"
  "SMART_WORKERS" "1" -}}
{{- if .Values.trustProxy -}}
{{- $_ := set $own "SMART_TRUST_PROXY" .Values.trustProxy -}}
{{- end -}}
{{- if .Values.metrics.enabled -}}
{{- $_ := set $own "SMART_METRICS_PORT" (toString .Values.metrics.port) -}}
{{- end -}}
{{- if include "sallyport.policyConfigMap" . -}}
{{- $_ := set $own "SMART_POLICY_FILE" "/etc/sallyport/policy/policy.yaml" -}}
{{- end -}}
{{- if .Values.certificateAuthorities.existingConfigMap -}}
{{- $_ := set $own "NODE_EXTRA_CA_CERTS" "/etc/sallyport/ca/ca.crt" -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}
{{- $_ := set $own $name (toString $value) -}}
{{- end -}}
{{- toJson $own -}}
{{- end -}}

{{- define "sallyport.policyConfigMap" -}}
{{- if .Values.policy.existingConfigMap -}}
{{- .Values.policy.existingConfigMap -}}
{{- else if .Values.policy.content -}}
{{- include "sallyport.fullname" . }}-policy
{{- end -}}
{{- end -}}

{{/* Where the secret variables are, as a list of JSON: variable, secret, key. Takes root, and overrides by variable. */}}
{{- define "sallyport.secrets" -}}
{{- $root := .root -}}
{{- $overrides := default dict .overrides -}}
{{- $found := list -}}
{{- range .root.Values.secretKeys -}}
{{- $entry := . -}}
{{- if kindIs "string" . -}}
{{- $entry = dict "variable" . "secret" $root.Values.existingSecret "key" . -}}
{{- end -}}
{{- $found = append $found (merge (dict) (default dict (get $overrides $entry.variable)) $entry) -}}
{{- end -}}
{{- if not (toJson $found | contains "\"SMART_SECRET\"") -}}
{{- fail "secretKeys needs SMART_SECRET" -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/*
The values of a pod, as an object of JSON: those of all pods with those of a server, of the migration, or none of its own (a test).
Takes root, values.
*/}}
{{- define "sallyport.podValues" -}}
{{- $all := .root.Values -}}
{{- $own := default dict .values -}}
{{- $pod := dict -}}
{{- range list "podLabels" "podAnnotations" "nodeSelector" "dnsConfig" -}}
{{- $_ := set $pod . (merge (dict) (default dict (get $own .)) (default dict (get $all .))) -}}
{{- end -}}
{{- range list "env" "envFrom" "extraVolumes" "extraVolumeMounts" "extraInitContainers" "extraContainers" "hostAliases" "tolerations" -}}
{{- $_ := set $pod . (concat (default list (get $all .)) (default list (get $own .))) -}}
{{- end -}}
{{- range list "affinity" "topologySpreadConstraints" "priorityClassName" "runtimeClassName" "dnsPolicy" -}}
{{- $_ := set $pod . (default (get $all .) (get $own .)) -}}
{{- end -}}
{{- toJson $pod -}}
{{- end -}}

{{/* The parts of a pod's specification that servers, migration and tests share. Takes root, pod. */}}
{{- define "sallyport.podSpec" -}}
automountServiceAccountToken: {{ .root.Values.automountServiceAccountToken }}
enableServiceLinks: false
securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $field := list "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" "nodeSelector" "tolerations" "affinity" }}
{{- with get $.pod $field }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The parts of every container of the image. */}}
{{- define "sallyport.image.container" -}}
image: {{ include "sallyport.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
{{- end -}}

{{/* The parts of a container that servers and migration share. Takes root, pod, secrets, configMap, and policy. */}}
{{- define "sallyport.container" -}}
{{ include "sallyport.image.container" .root }}
envFrom:
  - configMapRef: { name: {{ .configMap }} }
  {{- with .pod.envFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  {{- range .secrets }}
  - { name: {{ .variable }}_FILE, value: /etc/sallyport/secrets/{{ .variable }} }
  {{- end }}
  {{- with .pod.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - { name: data, mountPath: /var/lib/sallyport }
  - { name: tmp, mountPath: /tmp }
  - { name: secrets, mountPath: /etc/sallyport/secrets, readOnly: true }
  {{- if .policy }}
  - { name: policy, mountPath: /etc/sallyport/policy, readOnly: true }
  {{- end }}
  {{- if .root.Values.certificateAuthorities.existingConfigMap }}
  - { name: ca, mountPath: /etc/sallyport/ca, readOnly: true }
  {{- end }}
  {{- with .pod.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Takes what sallyport.container takes. */}}
{{- define "sallyport.volumes" -}}
- name: data
  emptyDir: { sizeLimit: 64Mi }
- name: tmp
  emptyDir: { sizeLimit: 64Mi }
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range .secrets }}
      - secret:
          name: {{ .secret }}
          items: [{ key: {{ .key }}, path: {{ .variable }} }]
      {{- end }}
{{- with .policy }}
- name: policy
  configMap: { name: {{ . }} }
{{- end }}
{{- with .root.Values.certificateAuthorities.existingConfigMap }}
- name: ca
  configMap: { name: {{ . }} }
{{- end }}
{{- with .pod.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
