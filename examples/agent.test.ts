/** `examples/agent.mjs` as somebody starts it, against the real servers. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { PROGRAM } from '../test/support/program.ts'
import {
  newPlace,
  type Place,
  PROCESS_ENV,
  runProgram,
  type Started,
  startProcess,
} from '../test/support/started.ts'

describe('examples/agent.mjs', () => {
  let place: Place
  let servers: Started
  before(async () => {
    place = await newPlace()
    servers = startProcess(['start'], place)
    await servers.printed(/is running/)
    const { exitCode, stderr } = await runProgram(
      [
        'client',
        'add',
        '--id',
        'agent',
        '--public',
        '--redirect-uri',
        'http://127.0.0.1/callback',
        '--scope',
        'openid fhirUser patient/*.cruds',
      ],
      place,
    )
    assert.equal(exitCode, 0, stderr)
  })
  after(() => {
    servers.child.kill('SIGKILL')
    place.remove()
  })

  const run = async (...args: readonly string[]) => {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, 'agent.mjs'), ...PROGRAM, 'mcp', ...args],
      {
        env: { ...PROCESS_ENV, ...place.env },
        cwd: place.folder,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const [stdout, stderr, [exitCode]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ])
    return { stdout, stderr, exitCode }
  }

  it('summarizes the record, and proposes a change that nobody has signed', async () => {
    const { stdout, stderr, exitCode } = await run(
      '--client',
      'agent',
      '--patient',
      'patient-2',
      '--scope',
      'openid fhirUser patient/*.cruds',
    )
    assert.deepEqual([stderr, exitCode], ['', 0])
    assert.match(stdout, /^name: .+; born: /)
    assert.match(stdout, /Proposal \S+: open until .*Nothing was written/)
    assert.match(stdout, /: create ServiceRequest \| open/)
  })

  it('only reads without scopes that write', async () => {
    const { stdout, exitCode } = await run('--client', 'agent', '--patient', 'patient-2')
    assert.equal(exitCode, 0)
    assert.match(stdout, /It may not propose anything\./)
  })

  it('says what failed', async () => {
    const { stderr, exitCode } = await run('--client', 'nobody', '--patient', 'patient-2')
    assert.equal(exitCode, 1)
    assert.match(stderr, /Cannot issue token/)
  })
})
