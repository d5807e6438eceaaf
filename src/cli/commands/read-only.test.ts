import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { commandNames, loadCommand } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-nothing-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Commands before the first start: they create the data folder. */
const FIRST = [
  'start',
  'client add',
  'clinician add',
  'account add',
  'data import',
  'data reset',
  'keys rotate',
  'upgrade apply',
]

/** The arguments without which a command would not look for the data. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  token: '--client x --patient y',
  launch: '--client x --patient y',
  'account set': 'x --display-name X',
  'clinician set': 'x --display-name X',
  'clinician link': '--username x --issuer https://idp.example --subject s',
  'client set': 'x --name X',
  'keys withdraw': 'x',
  'audit check-file': 'some.ndjson',
  'login explain': '--claims claims.json --provider x',
  'data export': 'here',
  'check upstream': '--url http://localhost:9/fhir',
  explain: '--method GET --url /Patient/1 --scope patient/Patient.rs --patient 1',
  completion: 'bash',
}

describe('a command in a folder without data', () => {
  for (const name of commandNames.filter(one => !FIRST.includes(one)))
    it(`creates nothing: ${name} (CLI-14)`, async () => {
      writeFileSync(join(folder, 'claims.json'), '{"sub":"x"}')
      writeFileSync(join(folder, 'some.ndjson'), '')
      const { positionals } = await loadCommand(name)
      const given = ARGUMENTS[name] ?? (positionals ? 'x' : '')
      const words = [...name.split(' '), ...given.split(' ')].filter(word => word !== '')
      const { stderr } = await sallyport(words, { cwd: folder, stdin: 'correct horse battery\n' })
      assert.deepEqual(readdirSync(folder).toSorted(), ['claims.json', 'some.ndjson'])
      assert.doesNotMatch(stderr, /^(Missing|Unknown option|Unexpected argument)/)
    })

  it('says where to run it (CLI-14)', async () => {
    const { exitCode, stderr } = await sallyport(['client', 'list'], { cwd: folder })
    assert.equal(exitCode, 1)
    assert.match(
      stderr,
      /^Cannot find .*data\/sallyport\.db: run the command in the folder where the servers were started, or set SMART_CONFIG or SMART_DATA_DIR\./,
    )
  })
})
