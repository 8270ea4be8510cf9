{{- define "roundhouse.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "roundhouse.selector" -}}
app.kubernetes.io/name: roundhouse
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "roundhouse.labels" -}}
{{ include "roundhouse.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "roundhouse.config" -}}
{{- if .Values.config -}}
{{ .Values.config }}
{{- else -}}
door {
  listen = ":8000"
  peers  = ["{{ include "roundhouse.name" . }}-peers:8001"]
}

admin {
  listen = ":8001"
  token  = env("ROUNDHOUSE_ADMIN_TOKEN")
}

pool {{ .Values.pool.name | quote }} {
{{- if .Values.picker.enabled }}
  driver         = "kubernetes"
  inference_pool = {{ .Values.pool.name | quote }}
{{- else }}
  driver   = "kubernetes"
  selector = {{ .Values.pool.selector | quote }}
  port     = {{ .Values.pool.port }}
{{- end }}
{{- if .Values.rotation.enabled }}

  rotation {
    schedule      = {{ .Values.rotation.schedule | quote }}
    drain_timeout = {{ .Values.rotation.drainTimeout | quote }}
    ready_timeout = {{ .Values.rotation.readyTimeout | quote }}
  }
{{- end }}
}
{{ end -}}
{{- end -}}

{{- define "roundhouse.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .role }}
  labels:
    {{- include "roundhouse.labels" .all | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ include "roundhouse.name" .all }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .role }}
  labels:
    {{- include "roundhouse.labels" .all | nindent 4 }}
{{- end -}}
