/**
 * `npm run test:image`: starts the container image with a read-only file system and looks whether it works. Needs Podman, and
 * the image (`npm run image`). Without them it says so, and tries nothing.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { freePorts } from '../test/support/free-ports.ts'
import { HttpUser } from '../test/support/http-user.ts'

const { version } = JSON.parse(readFileSync(resolve(import.meta.dirname, '../package.json'), 'utf8'))
const IMAGE = `localhost/sallyport:${version}`
/** What this machine needs, such as `--runtime runc` or `--ulimit nofile=4096:4096`. */
const readOptions = (variable: string) => process.env[variable]?.split(' ') ?? []
const PODMAN = [
  '--storage-driver',
  process.env.STORAGE_DRIVER ?? 'vfs',
  '--cgroup-manager',
  'cgroupfs',
  ...readOptions('PODMAN_OPTIONS'),
]
const RUN = ['run', '--network', 'host', ...readOptions('PODMAN_RUN_OPTIONS')]
const MAX_MB = 250

const missing = findMissing()
if (missing) process.stderr.write(`NOT TRIED: ${missing}\n`)

function findMissing(): string | undefined {
  if (spawnSync('podman', ['--version']).status !== 0) return 'Podman is not installed'
  return podman('image', 'exists', IMAGE).status === 0
    ? undefined
    : `there is no image ${IMAGE}: run npm run image`
}

function podman(...args: readonly string[]) {
  return spawnSync('podman', [...PODMAN, ...args], { encoding: 'utf8' })
}

describe('the container image', { skip: missing }, () => {
  const name = `sallyport-test-${process.pid}`
  after(() => podman('rm', '--force', name))

  const inspect = () => JSON.parse(podman('image', 'inspect', IMAGE).stdout)[0]

  it(`is smaller than ${MAX_MB} MB, and says what it is`, () => {
    const { Size, Config, Labels } = inspect()
    assert(Size < MAX_MB * 1_000_000, `${Size / 1e6} MB`)
    assert.equal(Config.User, '10001:10001')
    assert.equal(Labels['org.opencontainers.image.version'], version)
    assert.match(Labels['org.opencontainers.image.revision'], /^[0-9a-f]{40}$/)
  })

  it('has no shell', () => {
    const { status, stderr } = podman(...RUN, '--rm', '--entrypoint', '/bin/sh', IMAGE, '-c', 'true')
    assert.notEqual(status, 0)
    assert.match(stderr, /no such file or directory|not found/)
  })

  it('launches an app with a read-only file system and without capabilities, and stops at SIGTERM', async () => {
    const [auth = 0, fhir = 0, app = 0] = await freePorts(3)
    const authUrl = `http://localhost:${auth}`
    const appUrl = `http://localhost:${app}`
    const env = {
      SMART_ISSUER_URL: authUrl,
      SMART_FHIR_BASE_URL: `http://localhost:${fhir}/fhir`,
      SMART_APP_URL: appUrl,
      SMART_SAMPLE_PATIENTS: '2',
    }
    const options = ['--name', name, '--read-only', '--cap-drop=all', '--security-opt=no-new-privileges']
    const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`])
    const running = spawn('podman', [...PODMAN, ...RUN, ...options, ...variables, IMAGE], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const ended = new Promise<number | null>(resolve => running.on('close', resolve))
    while (!(await isReady(authUrl)) && running.exitCode === null) await pause(200)

    const account = { username: 'clinician', password: 'sallyport', name: '' }
    const user = new HttpUser({ settings: { issuerUrl: authUrl, appUrl }, user: account })
    await user.signIn()
    await user.launch('patient-1')
    assert.equal((await user.api('summary')).status, 200)
    const health = podman('exec', name, 'sallyport', 'health', '--ready')
    assert.equal(health.status, 0, health.stdout + health.stderr)
    podman('kill', '--signal', 'TERM', name)
    assert.equal(await ended, 0)
  })
})

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).ok
  } catch {
    return false
  }
}
