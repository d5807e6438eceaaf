import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Interaction, parseInteraction } from '../../fhir/index.ts'
import type { Access } from '../../smart/index.ts'
import { makeCondition } from '../testing/test-host.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { chooseResponseRule, mayRelease } from './response-rule.ts'

/** Tells the permission that was asked for. */
const access: Access = { filterFor: (_, permission) => [{ id: permission }] }

function interactionOf(line: string): Interaction {
  const [method = '', url = ''] = line.split(' ')
  const [path = '', query = ''] = url.split('?')
  const interaction = parseInteraction({ method, path, query, headers: {} })
  assert(interaction.kind !== 'misunderstood', line)
  return interaction
}

const SHOWN: Readonly<Record<string, string>> = {
  'GET /metadata': 'r one',
  'GET /.well-known/smart-configuration': 'r one',
  'GET /Condition/1': 'r one',
  'GET /Condition/1/_history/2': 'r one',
  'GET /Condition/1/_history': 'r many',
  'GET /Condition/_history': 's many',
  'GET /_history': 's many',
  'GET /Condition?code=1': 's many',
  'GET /': 's many',
  'GET /Patient/1/Condition': 's many',
  'GET /Patient/1/$everything': 's many',
  'POST /': 's many',
  'POST /Condition': 'r one written',
  'PUT /Condition/1': 'r one written',
  'PUT /Condition?code=1': 'r one written',
  'PATCH /Condition/1': 'r one written',
  'PATCH /Condition?code=1': 'r one written',
  'DELETE /Condition/1': 'r one written',
  'DELETE /Condition?code=1': 'r one written',
}

describe('showsOf', () => {
  for (const [line, expected] of Object.entries(SHOWN))
    it(`tells what ${line} shows`, () => {
      const { filter, many, written } = chooseResponseRule(interactionOf(line), access)
      const [limit] = filter('Condition')
      assert(typeof limit === 'object')
      assert.equal([limit.id, many ? 'many' : 'one', ...(written ? ['written'] : [])].join(' '), expected)
    })
})

describe('isShown', () => {
  const own = { filter: () => [{ patient: '1' }], written: false }
  const bundle = (entry: unknown) => ({ resourceType: 'Bundle', entry })

  it('checks the entries of a Bundle only if the response may be one', () => {
    const one = bundle([{ resource: makeCondition('1') }])
    assert.equal(mayRelease(one, { ...own, many: true }, fhirBaseUrl), true)
    assert.equal(mayRelease(one, { ...own, many: false }, fhirBaseUrl), false)
    assert.equal(mayRelease(bundle([{ request: {} }]), { ...own, many: true }, fhirBaseUrl), true)
    assert.equal(mayRelease(bundle(undefined), { ...own, many: true }, fhirBaseUrl), true)
  })

  it('does not release what it cannot read', () => {
    for (const entry of [
      'x',
      {},
      5,
      { every: 'x' },
      [null],
      ['x'],
      [{ resource: null }],
      [{ resource: 'x' }],
    ])
      assert.equal(
        mayRelease(bundle(entry), { ...own, many: true }, fhirBaseUrl),
        false,
        JSON.stringify(entry),
      )
    for (const body of [undefined, null, 'x', [], {}])
      assert.equal(mayRelease(body, { ...own, many: true }, fhirBaseUrl), false)
  })
})
