import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../../test/support/command-line.ts'
import { isRecord } from '../core/index.ts'
import { commandNames, getSummary } from './commands/table.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const claims = join(folder, 'claims.json')
const ISSUER = 'http://localhost:1'
const ENV = {
  SMART_DATA_DIR: folder,
  SMART_LOGIN_PROVIDERS: JSON.stringify([
    {
      id: 'hospital',
      issuer: ISSUER,
      'client-id': 'sallyport',
      allow: { claim: 'groups', values: ['clinicians'] },
    },
  ]),
}

/** The arguments of every command that lists or shows something, and the members of its result. */
const READING: Readonly<Record<string, { readonly args: readonly string[]; readonly members: string }>> = {
  settings: { args: [], members: 'name env value source' },
  'account list': { args: [], members: 'items' },
  'clinician list': { args: [], members: 'items' },
  'login explain': { args: ['--claims', claims], members: 'allowed rows' },
  'bulk-export list': { args: [], members: 'items' },
  'bulk-export show': { args: ['none'], members: '' },
  'client list': { args: [], members: 'items' },
  'client show': { args: ['--id', 'growth'], members: 'client_id redirect_uris scope approved disabled' },
  'keys list': { args: [], members: 'items' },
  'grant list': { args: [], members: 'items services' },
  'sign-in list': { args: [], members: 'items' },
  audit: { args: [], members: 'resourceType recorded' },
  'audit verify': { args: [], members: 'seals records unsealed problems' },
  problems: { args: [], members: 'items' },
  explain: { args: ['--url', '/Patient/1', '--scope', 'patient/Patient.r'], members: 'allowed status text' },
  check: { args: [], members: 'level subject text' },
  'upgrade check': { args: [], members: 'version verdict findings' },
  'check upstream': { args: ['--url', 'http://localhost:1'], members: '' },
}

describe('--json', () => {
  before(async () => {
    writeFileSync(claims, JSON.stringify({ iss: ISSUER, sub: 'ada' }))
    const redirect = ['--redirect-uri', 'https://growth.example/callback', '--scope', 'patient/Patient.rs']
    const added = await sallyport(['client', 'add', '--id', 'growth', '--public', ...redirect], { env: ENV })
    assert.equal(added.exitCode, 0, added.stderr)
  })

  it('is an option of every command that lists or shows', () => {
    const names = commandNames.filter(name =>
      /^(?:List|Show|Verify|Validate|Check|Print the) /.test(getSummary(name)),
    )
    assert.deepEqual(names.toSorted(), Object.keys(READING).toSorted())
  })

  for (const [name, { args, members }] of Object.entries(READING))
    it(`makes the output of ${name} JSON`, async () => {
      const { stdout, stderr } = await sallyport([...name.split(' '), ...args, '--json'], { env: ENV })
      assert.doesNotMatch(stderr, /Unknown option/)
      if (members === '') return
      const value: unknown = JSON.parse(name === 'audit' ? (stdout.split('\n')[0] ?? '') : stdout)
      const first: unknown = Array.isArray(value) ? value[0] : value
      assert.ok(isRecord(first))
      for (const member of members.split(' ')) assert.ok(member in first, `${member} of ${stdout}`)
    })
})
