import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { parsePolicyText, readSettings } from '../config/index.ts'
import { isFailure } from '../core/index.ts'
import { readUserFilter } from './start/files.ts'

const folder = mkdtempSync(join(tmpdir(), 'policy-'))
after(() => rmSync(folder, { recursive: true }))

function readFilter(text: string, env: Record<string, string> = {}) {
  const file = join(folder, 'policy.yaml')
  writeFileSync(file, text)
  return readUserFilter(readSettings({ SMART_POLICY_FILE: file, SMART_DATA_DIR: folder, ...env }, folder))
}

const kim = { type: 'Practitioner', id: 'kim' }

describe('readUserFilter', () => {
  it('is undefined without a policy file: every clinician may see every patient', () => {
    assert.equal(readUserFilter(readSettings({ SMART_DATA_DIR: folder }, folder)), undefined)
  })

  it('reads YAML and JSON, and keeps ids of digits', () => {
    const rules = '{"rules":[{"clinicians":["Practitioner/kim"],"patients":[1,"Patient/2"]}]}'
    for (const text of [rules, 'rules:\n  - clinicians: [Practitioner/kim]\n    patients: [1, Patient/2]\n'])
      assert.deepEqual(readFilter(text)?.(kim, 'Condition', 'r'), [{ patient: '1' }, { patient: '2' }])
  })

  it('names the error and its location (USER-8)', () => {
    for (const [text, problem] of [
      ['', 'expected a list with the name rules'],
      ['[]', 'expected a list with the name rules'],
      ['rules: all', 'rules: expected a list'],
      ['rule: []', 'rule: unknown name; expected rules'],
      ['rules: [all]', 'rules[0]: expected clinicians, patients, organizations, careTeams'],
      ['rules: [{patients: all}]', "rules[0].clinicians: expected 'all', or a list such as [Practitioner/1]"],
      [
        'rules: [{clinicians: []}]',
        "rules[0].clinicians: expected 'all', or a list such as [Practitioner/1]",
      ],
      ['rules: [{clinicians: [Patient/1]}]', "rules[0].clinicians: expected 'all', or a list such as"],
      ['rules: [{clinicians: all}, {clinicians: all, patients: {a: 1}}]', 'rules[1].patients: expected'],
      ['rules: [{clinicians: all, patients: [a b]}]', "rules[0].patients: expected 'all', or a list of"],
      [
        'rules: [{clinicians: all, organizations: all}]',
        'rules[0].organizations: expected a list such as [Organization/1]',
      ],
      [
        'rules: [{clinicians: all, careTeams: all}]',
        "rules[0].careTeams: expected 'own', or a list such as [CareTeam/1]",
      ],
      ['rules: [{clinicians: all, patient: [1]}]', 'rules[0].patient: unknown name; expected clinicians'],
    ] as const)
      assert.throws(
        () => readFilter(text),
        ({ message }: Error) =>
          message.startsWith('Cannot use policy file ') && message.includes(`policy.yaml: ${problem}`),
        text,
      )
    assert.throws(() => readFilter('rules: ['), /^Error: Cannot use policy file .*policy\.yaml: /)
  })

  it('names every error of every rule, with its line', () => {
    const read = parsePolicyText(
      'rule: []\nrules:\n  - clinicians: []\n    patients: no\n    team: x\n  - clinicians: all\n    careTeams: all\n',
    )
    assert(isFailure(read))
    assert.deepEqual(
      read.problems.map(({ path, line }) => [path.join('.'), line]),
      [
        ['rule', 1],
        ['rules.0.team', 5],
        ['rules.0.clinicians', 3],
        ['rules.0.patients', 4],
        ['rules.1.careTeams', 7],
      ],
    )
  })
})
