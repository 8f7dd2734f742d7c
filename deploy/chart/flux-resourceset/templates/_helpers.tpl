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

{{/* The name of the Secret of the tokens, or an error that names what is missing. */}}
{{- define "flux-resourceset.tokens" -}}
{{- $tokens := .Values.tokens -}}
{{- if $tokens.existingSecret -}}
{{- if or $tokens.read $tokens.write }}{{ fail "tokens: set existingSecret, or read and write, and not both" }}{{ end -}}
{{ $tokens.existingSecret }}
{{- else -}}
{{- if not (and $tokens.read $tokens.write) }}{{ fail "tokens: set tokens.existingSecret to a Secret with the keys read and write, or set tokens.read and tokens.write" }}{{ end -}}
{{- if eq $tokens.read $tokens.write }}{{ fail "tokens: read and write must differ, because every cluster has the read token" }}{{ end -}}
{{ include "flux-resourceset.name" . }}-tokens
{{- end -}}
{{- end }}

{{/* Only checks. Values of the other store are refused, because they would have no effect. */}}
{{- define "flux-resourceset.store" -}}
{{- $database := .Values.database -}}
{{- if eq .Values.store.backend "sqlite" -}}
{{- range $name, $server := dict "reader" .Values.reader "writer" .Values.writer -}}
{{- if gt (int $server.replicas) 1 }}{{ fail (printf "%s.replicas: there is one, for a SQLite file belongs to one pod; for more set store.backend=postgres" $name) }}{{ end -}}
{{- end -}}
{{- if or $database.existingSecret $database.url }}{{ fail "database: it is used with store.backend=postgres only" }}{{ end -}}
{{- else -}}
{{- if .Values.persistence.existingClaim }}{{ fail "persistence: existingClaim is for store.backend=sqlite: with postgres there is no volume" }}{{ end -}}
{{- if .Values.persistence.mustExist }}{{ fail "persistence: mustExist is for store.backend=sqlite: with postgres there is no volume" }}{{ end -}}
{{- if hasKey .Values.podLabels "app.kubernetes.io/component" }}{{ fail "podLabels: app.kubernetes.io/component is reserved with store.backend=postgres: it distinguishes readers from writers" }}{{ end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.database) }}{{ fail "networkPolicy.database: set the peers of the database, or no server reaches it" }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The name of the Secret with the address of the database, or an error that names what is missing. */}}
{{- define "flux-resourceset.database" -}}
{{- $database := .Values.database -}}
{{- if $database.existingSecret -}}
{{- if $database.url }}{{ fail "database: set existingSecret or url, and not both" }}{{ end -}}
{{ $database.existingSecret }}
{{- else -}}
{{- if not $database.url }}{{ fail "database: with store.backend=postgres set database.existingSecret to a Secret with the key url, or set database.url" }}{{ end -}}
{{ include "flux-resourceset.name" . }}-database
{{- end -}}
{{- end }}

{{- define "flux-resourceset.database.env" -}}
- name: STORE_BACKEND
  value: postgres
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "flux-resourceset.database" . }}
      key: url
# The snapshot file of this server alone. If the server is restarted while the database is unavailable, it serves this file,
# unless it was down for longer than SNAPSHOT_MAX_AGE (1h).
- name: SNAPSHOT_FILE
  value: /var/lib/flux-resourceset/snapshot
{{- range $name, $value := dict
  "DATABASE_POOL_SIZE" .Values.database.poolSize
  "DATABASE_POOL_TIMEOUT" .Values.database.poolTimeout
  "DATABASE_STATEMENT_TIMEOUT" .Values.database.statementTimeout
  "SNAPSHOT_MAX_AGE" .Values.snapshot.maxAge }}
{{- with $value }}
- name: {{ $name }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ConfigMap of the seed. A fleet that must exist has none, because no new change log is created. */}}
{{- define "flux-resourceset.seed" -}}
{{- if and .Values.seed.documents .Values.seed.existingConfigMap }}{{ fail "seed: set existingConfigMap or documents, and not both" }}{{ end -}}
{{- if .Values.persistence.mustExist -}}
{{- else if .Values.seed.documents }}{{ include "flux-resourceset.name" . }}-seed{{ else }}{{ .Values.seed.existingConfigMap }}{{ end -}}
{{- end }}

{{/* Only checks. Without a volume every start is the first one. */}}
{{- define "flux-resourceset.persistence" -}}
{{- $persistence := .Values.persistence -}}
{{- if not $persistence.enabled -}}
{{- if $persistence.existingClaim }}{{ fail "persistence: existingClaim needs enabled=true, or the claim would not be used" }}{{ end -}}
{{- if $persistence.mustExist }}{{ fail "persistence: mustExist needs enabled=true: without a volume there is no fleet at a start" }}{{ end -}}
{{- if and (include "flux-resourceset.seed" .) (not .Values.seed.atEveryStart) }}{{ fail "persistence: with enabled=false and a seed, every restart serves the lists of the seed again, and Flux deletes what they lack; for a test, set seed.atEveryStart=true" }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "flux-resourceset.types" -}}
{{- if and .Values.resourceTypes.files .Values.resourceTypes.existingConfigMap }}{{ fail "resourceTypes: set existingConfigMap or files, and not both" }}{{ end -}}
{{- if .Values.resourceTypes.files }}{{ include "flux-resourceset.name" . }}-types{{ else }}{{ .Values.resourceTypes.existingConfigMap }}{{ end -}}
{{- end }}

{{/* The common part of pods, before their containers. */}}
{{- define "flux-resourceset.pod" -}}
# The server does not use the Kubernetes API.
automountServiceAccountToken: false
enableServiceLinks: false
# A server cuts off running requests after 20 seconds.
terminationGracePeriodSeconds: 30
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "flux-resourceset.annotations" -}}
# Resource types are read at the start only. So are tokens, but a hash of them would help to guess them.
annotations:
  checksum/types: {{ toJson .Values.resourceTypes | sha256sum }}
{{- with .Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* The common part of the two containers, after their env. */}}
{{- define "flux-resourceset.container" -}}
ports:
  - name: {{ .port }}
    containerPort: {{ .number }}
  - name: {{ .port }}-admin
    containerPort: {{ .admin }}
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

{{/* The address of metrics: no Service and no Ingress leads there. */}}
{{- define "flux-resourceset.admin.env" -}}
- name: ADMIN_ADDR
  value: 0.0.0.0:{{ . }}
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
