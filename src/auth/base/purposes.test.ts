import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { PORTAL_CLIENT } from '../../smart/index.ts'
import { findPurpose, PURPOSES } from './purposes.ts'

/** Stored audit records have these texts. Add new ones, and keep all others. */
const NOTES = [
  'Patient list',
  'Choice of a patient for an app',
  'Consent page',
  'Decision support',
  'Names in the list of apps with access',
  'Names on a page of a patient or relative',
  'Proposal of an assistant',
  'Signature of a proposal of an assistant',
  'Page of developers',
  'Launch of an app',
  'Launch requested by another system',
  'Check of an account',
  'Search for the patient of an account',
  'Check of who may see a patient',
  'Search for a patient in the audit trail',
  'Search for a patient in the administration',
  'Names on a page of the administration',
  'Export by a command',
  'Lookup in the administration',
  'Whose records a user may open',
  'Who may act for a patient',
  'Names and roles of staff',
  'Who signs in',
  'Whether the users of accounts exist',
  'Warning of similar names',
  'Suggestion for a mistyped name',
]

describe('PURPOSES', () => {
  it('are recognized in stored records by notes that never change', () => {
    assert.deepEqual(
      Object.values(PURPOSES).map(({ note }) => note),
      NOTES,
    )
    for (const purpose of Object.values(PURPOSES)) {
      assert.equal(findPurpose({ client_id: PORTAL_CLIENT, reason: purpose.note }), purpose)
      assert.equal(findPurpose({ client_id: 'an-app', reason: purpose.note }), undefined)
    }
    assert.equal(findPurpose({ client_id: PORTAL_CLIENT, reason: null }), undefined)
  })

  it('are each named by a reader, except those of old records and of a command', () => {
    const folder = new URL('..', import.meta.url).pathname
    const files = globSync('**/*.ts', { cwd: folder })
    const code = files
      .filter(file => !/purposes|\.test\.ts$/.test(file))
      .map(file => readFileSync(`${folder}/${file}`, 'utf8'))
      .join('\n')
      // Members of types.
      .replaceAll(/<[^<>]*>/g, '')
    const unused = Object.keys(PURPOSES).filter(
      name => !new RegExp(`(?:purpose: |,\\s+|asService\\()'${name}'`).test(code),
    )
    assert.deepEqual(unused, ['data-export', 'administration'])
  })

  it('tell what an administrator did, or what somebody did apart from looking, instead of the data that was read', () => {
    const acts = new Set(['launch', 'launch-request', 'signature'])
    for (const [name, purpose] of Object.entries(PURPOSES))
      assert.equal('act' in purpose, purpose.use === 'administration' || acts.has(name), name)
  })
})
