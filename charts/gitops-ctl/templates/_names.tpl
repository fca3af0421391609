{{- define "gitops-ctl.labels" -}}
app.kubernetes.io/name: gitops-ctl
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: gitops-ctl
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "gitops-ctl.selector" -}}
app.kubernetes.io/name: gitops-ctl
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end }}

{{- define "gitops-ctl.manager" -}}
gitops-ctl-manager
{{- end }}
