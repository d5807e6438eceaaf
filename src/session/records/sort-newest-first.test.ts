import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sortNewestFirst } from './search-fhir.ts'

describe('newestFirst', () => {
  const order = (...dates: (string | undefined)[]) => sortNewestFirst(dates, date => date)

  it('sorts the newest first and undated items last, in their original order', () => {
    assert.deepEqual(order(undefined, '2020-01-01', 'never', '2024-05-01', '2019'), [
      '2024-05-01',
      '2020-01-01',
      '2019',
      undefined,
      'never',
    ])
  })

  it('compares instants, not strings', () => {
    assert.deepEqual(order('2024-05-01T23:00:00-05:00', '2024-05-02T01:00:00Z'), [
      '2024-05-01T23:00:00-05:00',
      '2024-05-02T01:00:00Z',
    ])
  })

  it('keeps the order of equal dates', () => {
    const items = [1, 2, 3].map(id => ({ id, date: '2024-05-01' }))
    assert.deepEqual(
      sortNewestFirst(items, ({ date }) => date).map(({ id }) => id),
      [1, 2, 3],
    )
  })
})
