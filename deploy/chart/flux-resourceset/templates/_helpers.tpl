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

{{/* Nothing but refusals. What belongs to the other store is not passed over: it would be missed when it is needed. */}}
{{- define "flux-resourceset.store" -}}
{{- $database := .Values.database -}}
{{- if eq .Values.store.backend "sqlite" -}}
{{- range $name, $server := dict "reader" .Values.reader "writer" .Values.writer -}}
{{- if gt (int $server.replicas) 1 }}{{ fail (printf "%s.replicas: there is one, for a SQLite file belongs to one pod; for more set store.backend=postgres" $name) }}{{ end -}}
{{- end -}}
{{- if or $database.existingSecret $database.url }}{{ fail "database: it is used with store.backend=postgres only" }}{{ end -}}
{{- else -}}
{{- if .Values.persistence.existingClaim }}{{ fail "persistence: existingClaim is for store.backend=sqlite, for with postgres there is no volume" }}{{ end -}}
{{- if .Values.persistence.mustExist }}{{ fail "persistence: mustExist is for store.backend=sqlite, for with postgres there is no volume" }}{{ end -}}
{{- if hasKey .Values.podLabels "app.kubernetes.io/component" }}{{ fail "podLabels: app.kubernetes.io/component is taken with store.backend=postgres, for it tells readers from writers" }}{{ end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.database) }}{{ fail "networkPolicy.database: name the peers that are the database, or no server reaches it" }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The Secret with the address of the database, or a sentence that says what is missing. */}}
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
# The last picture, of this server alone. If it is restarted while the database is away it serves that, unless it was down
# for longer than SNAPSHOT_MAX_AGE (1h).
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

{{/* What pods have in common: before their containers. */}}
{{- define "flux-resourceset.pod" -}}
# It never talks to the Kubernetes API.
automountServiceAccountToken: false
enableServiceLinks: false
# A server cuts off what is still under way after 20 seconds.
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
# Types are read once, at the start. So are tokens, but a hash of them would be one to guess against.
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

{{/* What the two containers have in common: after their env. */}}
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

{{/* Where metrics are: no Service and no Ingress leads there. */}}
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
