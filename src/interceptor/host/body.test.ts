import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Interaction } from '../../fhir/index.ts'
import { readForm, readJson } from './check-exchange.ts'

const resource = { resourceType: 'Condition' }
const WRITES: readonly Interaction[] = [
  { kind: 'create', type: 'Condition' },
  { kind: 'bundle' },
  { kind: 'update', type: 'Condition', id: '1' },
  { kind: 'update-conditional', type: 'Condition', params: [] },
  { kind: 'patch', type: 'Condition', id: '1' },
  { kind: 'patch-conditional', type: 'Condition', params: [] },
]

describe('readJson', () => {
  it('reads the written JSON, whatever the host made of it', () => {
    for (const interaction of WRITES) {
      assert.equal(readJson(interaction, resource), resource, interaction.kind)
      assert.deepEqual(readJson(interaction, JSON.stringify(resource)), resource)
      assert.deepEqual(readJson(interaction, Buffer.from(JSON.stringify(resource))), resource)
    }
  })

  it('returns undefined without a body, and for interactions that write nothing', () => {
    for (const interaction of WRITES)
      for (const body of [undefined, null]) assert.equal(readJson(interaction, body), undefined)
    const read: Interaction = { kind: 'read', type: 'Condition', id: '1', params: [] }
    assert.equal(readJson(read, resource), undefined)
    assert.equal(readJson({ kind: 'delete', type: 'Condition', id: '1' }, resource), undefined)
  })

  it('returns no resource if the body is not JSON, or nested too deeply', () => {
    for (const body of ['junk', Buffer.from('{'), '['.repeat(10_000) + ']'.repeat(10_000)])
      assert.equal(readJson({ kind: 'create', type: 'Condition' }, body), '')
  })
})

describe('readForm', () => {
  it('reads the form, whatever the host made of it', () => {
    assert.equal(readForm('patient=1&code=x'), 'patient=1&code=x')
    assert.equal(readForm(Buffer.from('patient=1')), 'patient=1')
    assert.equal(readForm({ patient: '1', code: ['x', 'y'] }), 'patient=1&code=x&code=y')
  })

  it('returns an unreadable form if the parser made objects of it', () => {
    assert.equal(readForm({ patient: { $ne: '1' } }), 'patient=%00')
    for (const body of [undefined, null, 5]) assert.equal(readForm(body), undefined)
  })
})
