import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseLastN, selectLastN } from './last-n.ts'
import type { Resource } from './resource.ts'

const observation = (id: string, effectiveDateTime: string | undefined, ...codes: string[]): Resource => ({
  resourceType: 'Observation',
  id,
  code: { coding: codes.map(code => ({ system: 's', code })) },
  ...(effectiveDateTime !== undefined && { effectiveDateTime }),
})
const select = (observations: readonly Resource[], max = 1) =>
  selectLastN(observations, it => it, max, 'http://base').map(({ id }) => id)

describe('selectLastN', () => {
  it('selects the newest of each code, newest first, and those without a date last', () => {
    const all = [
      observation('a1', '2020', 'a'),
      observation('a2', '2022', 'a'),
      observation('a0', undefined, 'a'),
      observation('b1', '2021', 'b'),
    ]
    assert.deepEqual(select(all), ['a2', 'b1'])
    assert.deepEqual(select(all, 2), ['a2', 'a1', 'b1'])
    assert.deepEqual(select(all, 9), ['a2', 'a1', 'a0', 'b1'])
  })

  it('treats Observations that share a coding as the same code', () => {
    const all = [
      observation('1', '2022', 'a'),
      observation('2', '2021', 'a', 'b'),
      observation('3', '2020', 'b'),
    ]
    assert.deepEqual(select(all), ['1'])
  })

  it('compares texts without a coding', () => {
    const text = (id: string, at: string, code: unknown) => ({ ...observation(id, at), code }) as Resource
    const all = [
      text('1', '2020', { text: 'x' }),
      text('2', '2021', { text: 'x' }),
      text('3', '2022', { text: 'y' }),
    ]
    assert.deepEqual(select(all), ['3', '2'])
    assert.deepEqual(select([text('1', '2020', undefined), text('2', '2021', 5)]), ['2'])
  })
})

describe('parseLastN', () => {
  it('separates max from the search parameters', () => {
    const params = [
      ['patient', '1'],
      ['max', '3'],
      ['_format', 'json'],
      ['_id', 'x'],
    ] as const
    assert.deepEqual(parseLastN(params), {
      max: 3,
      criteria: [
        ['patient', '1'],
        ['_id', 'x'],
      ],
    })
    assert.deepEqual(parseLastN([]), { max: 1, criteria: [] })
  })

  for (const [name, value] of [
    ['max', '0'],
    ['max', '1001'],
    ['max', 'x'],
    ['_sort', 'date'],
    ['_include', 'Observation:subject'],
    ['_include:iterate', 'Observation:subject'],
    ['_summary', 'count'],
  ] as const)
    it(`refuses ${name}=${value}`, () => assert('problem' in parseLastN([[name, value]])))
})
