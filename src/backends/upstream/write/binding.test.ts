import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ExactResource, parseExact } from '../../../fhir/index.ts'
import { DeletedVersion } from '../read/read-version.ts'
import { hasOverwritten } from './binding.ts'

describe('an update that creates', () => {
  const resource = parseExact('{"resourceType":"Condition","id":"c"}') as ExactResource
  const check = (before: DeletedVersion | undefined, status: number, etag: string) =>
    hasOverwritten({ kind: 'update', type: 'Condition', id: 'c', resource, before }, status, etag)

  it('has overwritten a resource if its version is not the first', () => {
    assert.equal(check(undefined, 201, 'W/"1"'), false)
    assert.equal(check(undefined, 201, 'W/"2"'), true)
  })

  it('may have any version after a deletion (GATEWAY-21)', () => {
    const deleted = new DeletedVersion('Condition', 'c', 2)
    assert.equal(check(deleted, 201, 'W/"3"'), false)
    // HAPI 8.8.0, for a resource with references
    assert.equal(check(deleted, 201, 'W/"4"'), false)
    assert.equal(check(deleted, 200, 'W/"4"'), true)
  })
})
