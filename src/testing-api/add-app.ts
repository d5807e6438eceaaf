import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkOptions } from './check-options.ts'
import type { Run } from './commands.ts'
import type { App, RegisteredApp } from './types.ts'

const PROOFS = ['secret', 'jwks', 'jwksUrl'] as const

/** Registers an app by `client add`. */
export async function addApp(run: Run, app: App): Promise<RegisteredApp> {
  checkOptions('addApp', app, ['id', 'scope'])
  if (PROOFS.filter(name => app[name]).length > 1)
    throw new TypeError(`addApp: expected only one of ${PROOFS.join(', ')}`)
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-app-'))
  try {
    const args = [...listArguments(app), ...listProof(app, join(folder, 'jwks.json'))]
    const { stdout } = await run(['client', 'add', ...args], 'addApp')
    const [, secret] = /^client_secret: (.+)$/m.exec(stdout) ?? []
    return { id: app.id, ...(secret !== undefined && { secret }) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function listArguments(app: App): readonly string[] {
  const { id, scope, name, redirectUris = [], launchUrl, firstParty = false } = app
  return [
    `--id=${id}`,
    `--scope=${scope}`,
    ...redirectUris.map(uri => `--redirect-uri=${uri}`),
    ...(name === undefined ? [] : [`--name=${name}`]),
    ...(launchUrl === undefined ? [] : [`--launch-url=${launchUrl}`]),
    ...(firstParty ? ['--first-party'] : []),
  ]
}

/** How the app authenticates. The command reads keys from a file. */
function listProof({ secret = false, jwks, jwksUrl }: App, file: string): readonly string[] {
  if (secret) return ['--secret']
  if (jwksUrl !== undefined) return [`--jwks-url=${jwksUrl}`]
  if (jwks === undefined) return ['--public']
  writeFileSync(file, JSON.stringify(jwks))
  return [`--jwks-file=${file}`]
}
