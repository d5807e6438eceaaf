import { settingRows } from './table.ts'

/** The table of all settings as a Markdown page (`docs/settings.md`). */
export function settingsReference(): string {
  const rows = settingRows.map(([, row]) =>
    [
      `\`${row.name}\``,
      `\`${row.env}\``,
      row.otherwise ?? `\`${row.initial}\``,
      cell(row.about),
      cell(row.type.expected),
    ].join(' | '),
  )
  return `${INTRODUCTION}
| setting | environment | default | what for | value |
|---|---|---|---|---|
${rows.map(row => `| ${row} |`).join('\n')}

${CLOSING}`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<')
}

const INTRODUCTION = `# Settings

<!-- Made from src/config/table.ts by scripts/settings-reference.ts. Change it there. -->

A setting is read from its environment variable, or from \`sallyport.yaml\` (or the file that \`SMART_CONFIG\` names)
under its dotted name; the environment wins. Every setting has the variable that follows from its name: upper case, with \`_\` for
every dot and hyphen (\`smart.server.issuer-url\` is \`SMART_SERVER_ISSUER_URL\`). Many have a shorter one too, which
the table shows. If both are set and differ, the start stops and names them. An empty variable counts as not set. In the file an unknown name or a bad
value stops the start with the name and what was expected; an unknown \`SMART_*\` variable causes a warning.
\`npm run -s sallyport -- settings\` prints the effective ones, secrets masked.

\`\`\`yaml
# sallyport.yaml
smart.server.issuer-url: https://auth.ehr.example
smart.server.bind: [10.0.0.5]
smart:
  app:
    session-idle-seconds: 900
\`\`\`
`

const CLOSING = `\`defaultNeedPatientBanner\` is accepted in the file for \`smart.server.default-need-patient-banner\`. Relative paths
are relative to the folder in which the command was started.

## On loopback and off

**On loopback** means that all three addresses (\`issuer-url\`, \`fhir-base-url\`, \`app-url\`) and every bind address are
loopback: \`localhost\`, names under it, \`127.0.0.0/8\`, \`::1\`. There everything has a default, and a secret is made on
first start in the data folder, readable by its user only.

Off loopback the start stops if one of these is missing, and names it: \`SMART_ISSUER_URL\`, \`SMART_FHIR_BASE_URL\`,
\`SMART_APP_URL\`, \`SMART_CLIENT_LAUNCH_URL\`, \`SMART_SECRET\`. It also stops at an \`http:\` address, unless
\`SMART_ALLOW_HTTP=true\` (a proxy in front that speaks https is set as the https address, with \`SMART_TRUST_PROXY\`).
Commands that only open the database (\`clinician\`, \`client\`) still work. See [production.md](production.md).
`
