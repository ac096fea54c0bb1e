{{- /* No two releases have one name. A release's own has at most 53 letters, and a Service's 63. */}}
{{- define "keyhole.name" -}}
{{- if eq .Release.Name "keyhole" }}keyhole{{ else }}{{ .Release.Name }}-keyhole{{ end }}
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

{{- /* The pod of a command, with the fields of `pod`: (dict "root" $ "command" WORD "database" DATABASE). */}}
{{- define "keyhole.pod" -}}
{{- mergeOverwrite (include "keyhole.ownPod" . | fromYaml) .root.Values.pod | toYaml }}
{{- end }}

{{- define "keyhole.ownPod" -}}
automountServiceAccountToken: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .root.Values.user }}
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  fsGroup: {{ . }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
# A server may take 23 s to end.
terminationGracePeriodSeconds: {{ add 30 .root.Values.drainSeconds }}
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
      - name: KEYHOLE_CHECKPOINT_FILE
        value: /data/checkpoint
      {{- end }}
      - name: KEYHOLE_ROOT_KEY_FILE
        value: /etc/keyhole/root.key
      {{- with .root.Values.witness }}
      - name: KEYHOLE_WITNESS
        value: {{ . | quote }}
      {{- end }}
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
    {{- if .root.Values.lifecycle }}
    lifecycle:
      {{- toYaml .root.Values.lifecycle | nindent 6 }}
    {{- else if and (eq .command "serve") .root.Values.drainSeconds (semverCompare ">=1.30-0" .root.Capabilities.KubeVersion.Version) }}
    lifecycle:
      preStop:
        sleep:
          seconds: {{ .root.Values.drainSeconds }}
    {{- end }}
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
      - name: root-key
        mountPath: /etc/keyhole
        readOnly: true
      - name: tmp
        mountPath: /tmp
volumes:
  - name: root-key
    secret:
      secretName: {{ .root.Values.rootKey.secret | quote }}
      defaultMode: 0400
      items:
        - key: {{ .root.Values.rootKey.key | quote }}
          path: root.key
  - name: tmp
    emptyDir: {}
  - name: data
    {{- if .database.secret }}
    emptyDir: {}
    {{- else }}
    persistentVolumeClaim:
      claimName: {{ .root.Values.persistence.existingClaim | default (include "keyhole.name" .root) | quote }}
    {{- end }}
{{- end }}
