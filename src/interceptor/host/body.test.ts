import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Interaction } from '../../fhir/index.ts'
import { formText, jsonOf } from './body.ts'

const resource = { resourceType: 'Condition' }
const WRITES: readonly Interaction[] = [
  { kind: 'create', type: 'Condition' },
  { kind: 'bundle' },
  { kind: 'update', type: 'Condition', id: '1' },
  { kind: 'update-conditional', type: 'Condition', params: [] },
  { kind: 'patch', type: 'Condition', id: '1' },
  { kind: 'patch-conditional', type: 'Condition', params: [] },
]

describe('jsonOf', () => {
  it('is what was written, whatever the host made of it', () => {
    for (const interaction of WRITES) {
      assert.equal(jsonOf(interaction, resource), resource, interaction.kind)
      assert.deepEqual(jsonOf(interaction, JSON.stringify(resource)), resource)
      assert.deepEqual(jsonOf(interaction, Buffer.from(JSON.stringify(resource))), resource)
    }
  })

  it('is undefined where nothing was sent, and of what writes nothing', () => {
    for (const interaction of WRITES)
      for (const body of [undefined, null]) assert.equal(jsonOf(interaction, body), undefined)
    const read: Interaction = { kind: 'read', type: 'Condition', id: '1', params: [] }
    assert.equal(jsonOf(read, resource), undefined)
    assert.equal(jsonOf({ kind: 'delete', type: 'Condition', id: '1' }, resource), undefined)
  })

  it('is no resource where it is no JSON', () => {
    for (const body of ['junk', Buffer.from('{')])
      assert.equal(jsonOf({ kind: 'create', type: 'Condition' }, body), '')
  })
})

describe('formText', () => {
  it('is the form, whatever the host made of it', () => {
    assert.equal(formText('patient=1&code=x'), 'patient=1&code=x')
    assert.equal(formText(Buffer.from('patient=1')), 'patient=1')
    assert.equal(formText({ patient: '1', code: ['x', 'y'] }), 'patient=1&code=x&code=y')
  })

  it('cannot be read where a parser made more of it than text', () => {
    assert.equal(formText({ patient: { $ne: '1' } }), 'patient=%00')
    for (const body of [undefined, null, 5]) assert.equal(formText(body), undefined)
  })
})
