import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { cacheFolder } from '../../test/support/user-cache.ts'

export const VERSION = '26.0.7'
const ADMIN = { username: 'admin', password: 'the password of the administrator' } as const
const START_MS = 600_000

export interface Keycloak {
  readonly issuer: string
  readonly pid: number
  /** Ends every session of a user, as an administrator. */
  logOut(username: string): Promise<void>
  stop(): Promise<void>
}

/** Fetches Keycloak from Maven Central once, imports a realm and starts it. Needs Java 17, Maven and 1 GB of memory. */
export async function startKeycloak(
  port: number,
  realm: { readonly realm: string },
  command: readonly string[] = ['start-dev'],
): Promise<Keycloak> {
  const home = copyKeycloak()
  mkdirSync(join(home, 'data/import'), { recursive: true })
  writeFileSync(join(home, 'data/import/realm.json'), JSON.stringify(realm))
  const url = `http://localhost:${port}`
  const args = [...command, '--import-realm', `--http-port=${port}`]
  const child = spawn('sh', [join(home, 'bin/kc.sh'), ...args], {
    env: {
      ...process.env,
      JAVA_OPTS_KC_HEAP: '-Xms128m -Xmx640m',
      KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
      KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const issuer = `${url}/realms/${realm.realm}`
  await waitFor(child, `${issuer}/.well-known/openid-configuration`)
  return {
    issuer,
    pid: child.pid ?? 0,
    logOut: username => logOut(url, realm.realm, username),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'close')
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** A copy for this run, because Keycloak writes into its own folder. */
function copyKeycloak(): string {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-keycloak-'))
  cpSync(join(cacheFolder(`keycloak-${VERSION}`, fetchKeycloak), `keycloak-${VERSION}`), home, {
    recursive: true,
  })
  return home
}

function fetchKeycloak(work: string): void {
  const artifact = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`
  execFileSync('mvn', ['-q', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${work}`], {
    cwd: work,
    stdio: 'inherit',
  })
  const zip = join(work, `keycloak-quarkus-dist-${VERSION}.zip`)
  execFileSync('jar', ['xf', zip], { cwd: work })
  rmSync(zip)
}

async function waitFor(child: ChildProcess, url: string): Promise<void> {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', chunk => (output += chunk))
  const end = Date.now() + START_MS
  while (Date.now() < end && child.exitCode === null) {
    const response = await fetch(url).catch(() => undefined)
    if (response?.ok) return
    await pause(500)
  }
  child.kill('SIGKILL')
  throw new Error(`Keycloak did not start:\n${output.slice(-4000)}`)
}

async function logOut(url: string, realm: string, username: string): Promise<void> {
  const form = new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...ADMIN })
  const token = await fetch(`${url}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: form,
  })
  const { access_token } = (await token.json()) as { access_token: string }
  const headers = { authorization: `Bearer ${access_token}` }
  const users = await fetch(`${url}/admin/realms/${realm}/users?username=${username}&exact=true`, { headers })
  const [user] = (await users.json()) as { id: string }[]
  const ended = await fetch(`${url}/admin/realms/${realm}/users/${user?.id}/logout`, {
    method: 'POST',
    headers,
  })
  if (!ended.ok) throw new Error(`Cannot end the sessions of ${username}: ${ended.status}`)
}
