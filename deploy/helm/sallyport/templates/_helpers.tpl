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

{{/* Variables of all servers that are not secret. */}}
{{- define "sallyport.settings" -}}
SMART_ISSUER_URL: {{ .Values.urls.issuer | quote }}
SMART_FHIR_BASE_URL: {{ .Values.urls.fhir | quote }}
SMART_APP_URL: {{ .Values.urls.app | quote }}
SMART_FHIR_UPSTREAM_URL: {{ .Values.fhir.upstreamUrl | quote }}
SMART_AUTH_PORT: '9000'
SMART_FHIR_PORT: '8080'
SMART_APP_PORT: '8081'
SMART_DATA_DIR: /var/lib/sallyport
SMART_SAMPLE_PATIENTS: '0'
SMART_WORKERS: '1'
{{- if .Values.trustProxy }}
SMART_TRUST_PROXY: {{ .Values.trustProxy | quote }}
{{- end }}
{{- if .Values.metrics.enabled }}
SMART_METRICS_PORT: {{ .Values.metrics.port | quote }}
{{- end }}
{{- if include "sallyport.policyConfigMap" . }}
SMART_POLICY_FILE: /etc/sallyport/policy/policy.yaml
{{- end }}
{{- if .Values.certificateAuthorities.existingConfigMap }}
NODE_EXTRA_CA_CERTS: /etc/sallyport/ca/ca.crt
{{- end }}
{{- end -}}

{{- define "sallyport.policyConfigMap" -}}
{{- if .Values.policy.existingConfigMap -}}
{{- .Values.policy.existingConfigMap -}}
{{- else if .Values.policy.content -}}
{{- include "sallyport.fullname" . }}-policy
{{- end -}}
{{- end -}}

{{/* The parts of a container that servers and Job share. Takes root, secret. */}}
{{- define "sallyport.environment" -}}
image: {{ include "sallyport.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
envFrom:
  - configMapRef: { name: {{ .configMap }} }
env:
  {{- range .root.Values.secretKeys }}
  - { name: {{ . }}_FILE, value: /etc/sallyport/secrets/{{ . }} }
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - { name: data, mountPath: /var/lib/sallyport }
  - { name: tmp, mountPath: /tmp }
  - { name: secrets, mountPath: /etc/sallyport/secrets, readOnly: true }
  {{- if include "sallyport.policyConfigMap" .root }}
  - { name: policy, mountPath: /etc/sallyport/policy, readOnly: true }
  {{- end }}
  {{- if .root.Values.certificateAuthorities.existingConfigMap }}
  - { name: ca, mountPath: /etc/sallyport/ca, readOnly: true }
  {{- end }}
{{- end -}}

{{- define "sallyport.volumes" -}}
- name: data
  emptyDir: { sizeLimit: 64Mi }
- name: tmp
  emptyDir: { sizeLimit: 64Mi }
- name: secrets
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      {{- range .root.Values.secretKeys }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
{{- with include "sallyport.policyConfigMap" .root }}
- name: policy
  configMap: { name: {{ . }} }
{{- end }}
{{- with .root.Values.certificateAuthorities.existingConfigMap }}
- name: ca
  configMap: { name: {{ . }} }
{{- end }}
{{- end -}}
