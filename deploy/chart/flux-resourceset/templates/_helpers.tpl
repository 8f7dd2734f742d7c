{{- define "flux-resourceset.labels" -}}
{{ include "flux-resourceset.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "flux-resourceset.selector" -}}
app.kubernetes.io/name: flux-resourceset
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flux-resourceset.name" -}}
{{ .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The Secret of the tokens, or a sentence that says what is missing. */}}
{{- define "flux-resourceset.tokens" -}}
{{- $tokens := .Values.tokens -}}
{{- if $tokens.existingSecret -}}
{{- if or $tokens.read $tokens.write }}{{ fail "tokens: set existingSecret, or read and write, and not both" }}{{ end -}}
{{ $tokens.existingSecret }}
{{- else -}}
{{- if not (and $tokens.read $tokens.write) }}{{ fail "tokens: set tokens.existingSecret to a Secret with the keys read and write, or set tokens.read and tokens.write" }}{{ end -}}
{{- if eq $tokens.read $tokens.write }}{{ fail "tokens: read and write must differ, for every cluster holds the token that reads" }}{{ end -}}
{{ include "flux-resourceset.name" . }}-tokens
{{- end -}}
{{- end }}

{{/* The ConfigMap of the seed. A fleet that must exist has none: there is nothing to begin. */}}
{{- define "flux-resourceset.seed" -}}
{{- if and .Values.seed.documents .Values.seed.existingConfigMap }}{{ fail "seed: set existingConfigMap or documents, and not both" }}{{ end -}}
{{- if .Values.persistence.mustExist -}}
{{- else if .Values.seed.documents }}{{ include "flux-resourceset.name" . }}-seed{{ else }}{{ .Values.seed.existingConfigMap }}{{ end -}}
{{- end }}

{{/* Nothing but refusals. Without a volume every start is the first one. */}}
{{- define "flux-resourceset.persistence" -}}
{{- $persistence := .Values.persistence -}}
{{- if not $persistence.enabled -}}
{{- if $persistence.existingClaim }}{{ fail "persistence: existingClaim needs enabled=true, or the claim would not be used" }}{{ end -}}
{{- if $persistence.mustExist }}{{ fail "persistence: mustExist needs enabled=true, for without a volume no fleet ever exists at a start" }}{{ end -}}
{{- if and (include "flux-resourceset.seed" .) (not .Values.seed.atEveryStart) }}{{ fail "persistence: with enabled=false and a seed, every restart gives clusters the lists of the seed again, and what the seed lacks is collected; to try it, set seed.atEveryStart=true" }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "flux-resourceset.types" -}}
{{- if and .Values.resourceTypes.files .Values.resourceTypes.existingConfigMap }}{{ fail "resourceTypes: set existingConfigMap or files, and not both" }}{{ end -}}
{{- if .Values.resourceTypes.files }}{{ include "flux-resourceset.name" . }}-types{{ else }}{{ .Values.resourceTypes.existingConfigMap }}{{ end -}}
{{- end }}

{{/* What the two containers have in common: after their env. */}}
{{- define "flux-resourceset.container" -}}
ports:
  - name: {{ .port }}
    containerPort: {{ .number }}
livenessProbe:
  httpGet:
    path: /health
    port: {{ .port }}
readinessProbe:
  httpGet:
    path: /ready
    port: {{ .port }}
  periodSeconds: 5
resources: {{ toYaml .resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "flux-resourceset.env" -}}
- name: AUTH_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "flux-resourceset.tokens" . }}
      key: read
{{- with .Values.publicUrl }}
- name: PUBLIC_URL
  value: {{ . | quote }}
{{- end }}
{{- end }}
