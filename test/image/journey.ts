import assert from 'node:assert/strict'
import { HttpUser } from '../support/http-user.ts'
import type { Container, Finished } from './machine.ts'

const PASSWORD = 'correct horse battery staple'
const NEW_PASSWORD = 'a longer correct horse battery staple'

interface Urls {
  readonly issuerUrl: string
  readonly appUrl: string
}

/** Types documented commands: the first adds an administrator, whose user name it returns. */
export async function addAdministrator(
  commands: readonly string[],
  run: (command: string, stdin?: string) => Promise<Finished>,
): Promise<string> {
  const [add = '', ...others] = commands
  const [, username = ''] = /clinician add .*--username (\S+)/.exec(add) ?? assert.fail(add)
  for (const [command, stdin] of [[add, `${PASSWORD}\n`], ...others.map(other => [other])]) {
    const { exitCode, output } = await run(command ?? '', stdin)
    assert.equal(exitCode, 0, `${command}\n${output}`)
  }
  return username
}

/** Stops servers as a container runtime does. */
export async function stopAll(containers: readonly Container[]): Promise<void> {
  for (const { exitCode, output } of await Promise.all(containers.map(it => it.stop())))
    assert.equal(exitCode, 0, `after SIGTERM:\n${output}`)
}

/** Signs in, sees the administration, and launches the demo app or, without its server, an app elsewhere. */
export async function launchAs(username: string, settings: Urls, hasApp: boolean): Promise<void> {
  const user = new HttpUser({ settings, user: { username, password: PASSWORD, name: '' } })
  await user.signIn()
  // Somebody else may have seen the password, so it has to be replaced.
  const body = new URLSearchParams({ next: NEW_PASSWORD, again: NEW_PASSWORD })
  await user.open(`${settings.issuerUrl}/login/new-password`, { method: 'POST', body })
  const admin = await user.request(`${settings.issuerUrl}/admin`)
  assert.equal(admin.status, 200, `no administrator: ${admin.headers.get('location')}`)
  if (hasApp) {
    await user.launch('patient-1')
    const summary = await user.api('summary')
    assert.equal(summary.status, 200, await summary.text())
    return
  }
  const chosen = new URLSearchParams({ patientId: 'patient-1' })
  const launched = await user.request(`${settings.issuerUrl}/portal/launch`, { method: 'POST', body: chosen })
  const location = launched.headers.get('location') ?? ''
  assert(location.startsWith(`${settings.appUrl}/launch?`), `${launched.status} ${location}`)
}

/** The words of a command line of the shell, without its redirections. */
export function splitCommand(line: string): readonly string[] {
  const words =
    line
      .replaceAll('\\\n', ' ')
      .replace(/ < \S+$/, '')
      .match(/"[^"]*"|'[^']*'|\S+/g) ?? []
  return words.map(word => word.replace(/^(["'])(.*)\1$/, '$2'))
}
