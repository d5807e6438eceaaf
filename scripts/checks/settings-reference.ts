import { mayBeFile, type SettingRow } from '../../src/config/setting-row.ts'
import { settingGroups } from '../../src/config/table.ts'

export function settingsReference(): string {
  const sections = Object.entries(settingGroups).map(
    ([title, rows]) => `## ${title}

| setting | environment variable | default | purpose | value |
|---|---|---|---|---|
${Object.values(rows).map(renderRow).join('\n')}
`,
  )
  return `${INTRODUCTION}\n${sections.join('\n')}\n${CLOSING}`
}

function renderRow(row: SettingRow<unknown>): string {
  const { name, env, otherwise, initial, about, type } = row
  const cells = [
    `\`${name}\``,
    mayBeFile(row) ? `\`${env}\`, \`…_FILE\`` : `\`${env}\``,
    otherwise ?? `\`${initial}\``,
    escapeCell(about),
    escapeCell(type.expected),
  ]
  return `| ${cells.join(' | ')} |`
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<')
}

const INTRODUCTION = `# Settings

<!-- Generated from the tables in src/config by \`npm run reference\`. Change them there. -->

You can set a setting in two places: its environment variable, or its name in \`sallyport.yaml\` (or in the file named in
\`SMART_CONFIG\`). The environment takes precedence.

- Every setting has one environment variable, which the tables show. Version 0.3 also read the variable that follows from the name
  (\`SMART_SERVER_ISSUER_URL\` for \`smart.server.issuer-url\`). The servers do not start if such a variable is set, and name the right one.
- A secret may also be the content of a file. The variable with \`_FILE\` at its end names the file (\`SMART_SECRET_FILE\`), as does the name
  with \`-file\` in \`sallyport.yaml\` (\`smart.server.secret-file\`). The value and the file must not both be set. The tables mark such settings
  with \`_FILE\`.
- An empty variable counts as unset.
- An unknown name or an invalid value in the file stops the start, with the name and the expected value. An unknown \`SMART_*\`
  variable causes a warning.
- Relative paths are relative to the working directory.
- \`npm run -s sallyport -- settings\` prints the settings in effect, with secrets masked.

\`\`\`yaml
# sallyport.yaml
smart.server.issuer-url: https://auth.ehr.example
smart.server.bind: [10.0.0.5]
smart:
  app:
    session-idle-seconds: 900
\`\`\`
`

const CLOSING = `The file may use \`defaultNeedPatientBanner\` as another name of \`smart.server.default-need-patient-banner\`.

## OpenTelemetry

Traces are exported by the standard variables of OpenTelemetry (\`OTEL_EXPORTER_OTLP_ENDPOINT\` and others), which have no name in the file: [traces](how-to/watch.md#traces).

## On loopback and off loopback

A deployment is **on loopback** if all three URLs (\`issuer-url\`, \`fhir-base-url\`, \`app-url\`) and all addresses in \`bind\` are loopback:
\`localhost\`, names under it, \`127.0.0.0/8\`, \`::1\`. Every setting then has a default. The first start generates a secret in the data folder,
in a file that only its owner can read.

**Off loopback** the servers do not start, and name the reason, if

- one of \`SMART_ISSUER_URL\`, \`SMART_FHIR_BASE_URL\`, \`SMART_APP_URL\`, \`SMART_CLIENT_LAUNCH_URL\` and \`SMART_SECRET\` is missing;
- a URL uses \`http:\`, unless \`SMART_ALLOW_HTTP=true\`. Behind a proxy that terminates TLS, set the https URLs of the proxy, and the proxy
  itself in \`SMART_TRUST_PROXY\`;
- \`SMART_LAB=true\` is set without \`SMART_LAB_EXPOSES_ALL_PATIENTS=true\`, or without https.

Commands that only open the database (\`clinician\`, \`client\`) work without these settings. See [production](production.md).
`
