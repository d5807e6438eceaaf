import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../core/index.ts'
import { findNextPage } from './search-fhir.ts'

const BASE = 'https://fhir.example/r4'

function next(url: string) {
  return findNextPage(
    {
      resourceType: 'Bundle',
      link: [
        { relation: 'self', url: 'x' },
        { relation: 'next', url },
      ],
    },
    BASE,
  )
}

describe('nextPage', () => {
  it('is the last page without a next link', () => {
    assert.equal(findNextPage({ resourceType: 'Bundle' }, BASE), undefined)
  })

  for (const [url, resolved] of [
    [`${BASE}?_getpages=1`, `${BASE}?_getpages=1`],
    [`${BASE}/Condition?page=2`, `${BASE}/Condition?page=2`],
    ['Condition?page=2', `${BASE}/Condition?page=2`],
    ['/r4/Condition?page=2', `${BASE}/Condition?page=2`],
  ] as const)
    it(`follows ${url}`, () => assert.equal(next(url), resolved))

  for (const url of [
    'https://evil.example/r4/Condition?page=2',
    'http://fhir.example/r4/Condition?page=2',
    'https://fhir.example:8443/r4/Condition',
    'https://fhir.example.evil.example/r4/Condition',
    'https://user@fhir.example/r4/Condition',
    '//evil.example/r4/Condition',
    'https://fhir.example/other',
    'https://fhir.example/r4x/Condition',
    'https://fhir.example/r4/../other/Condition',
    'javascript:alert(1)',
    'https://',
  ])
    it(`does not follow ${url}`, () => assert.ok(isFailure(next(url))))
})
