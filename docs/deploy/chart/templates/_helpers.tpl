{{- define "keyhole.name" -}}
{{- if contains "keyhole" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-keyhole{{ end }}
{{- end }}

{{- /* Every object of one release. */}}
{{- define "keyhole.selector" -}}
app.kubernetes.io/name: keyhole
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "keyhole.labels" -}}
{{ include "keyhole.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "keyhole.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* Where clients reach the server. */}}
{{- define "keyhole.url" -}}
{{- if .Values.ingress.host }}https://{{ .Values.ingress.host }}
{{- else }}http://{{ include "keyhole.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end }}
{{- end }}

{{- /* A setting from a Secret: (list NAME SECRET). */}}
{{- define "keyhole.fromSecret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ (index . 1).secret | quote }}
      key: {{ (index . 1).key | quote }}
{{- end }}

{{- /* The pod of a command: (dict "root" $ "command" WORD "database" DATABASE). */}}
{{- define "keyhole.pod" -}}
automountServiceAccountToken: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: {{ .command }}
    image: {{ include "keyhole.image" .root | quote }}
    args: [{{ .command }}]
    env:
      - name: KEYHOLE_DATA
        value: /data/keyhole
      - name: KEYHOLE_OPS_HOST
        value: 0.0.0.0
      - name: KEYHOLE_OPS_PORT
        value: "4101"
      {{- if .database.secret }}
      {{- include "keyhole.fromSecret" (list "DATABASE_URL" .database) | nindent 6 }}
      {{- end }}
      {{- include "keyhole.fromSecret" (list "KEYHOLE_ROOT_KEY" .root.Values.rootKey) | nindent 6 }}
      {{- if and (eq .command "serve") .root.Values.limiter.secret }}
      {{- include "keyhole.fromSecret" (list "KEYHOLE_LIMITER_URL" .root.Values.limiter) | nindent 6 }}
      {{- end }}
      {{- with .root.Values.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    ports:
      {{- if eq .command "serve" }}
      - name: api
        containerPort: 4100
      {{- end }}
      - name: metrics
        containerPort: 4101
    readinessProbe:
      httpGet:
        path: /readyz
        port: metrics
    livenessProbe:
      httpGet:
        path: /livez
        port: metrics
    resources:
      {{- toYaml .root.Values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    volumeMounts:
      - name: data
        mountPath: /data
volumes:
  - name: data
    {{- if .database.secret }}
    emptyDir: {}
    {{- else }}
    persistentVolumeClaim:
      claimName: {{ .root.Values.persistence.existingClaim | default (include "keyhole.name" .root) | quote }}
    {{- end }}
{{- with .root.Values.pod }}
{{ toYaml . }}
{{- end }}
{{- end }}
