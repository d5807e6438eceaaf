import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { countRuns } from '../../../../test/support/thorough.ts'
import { isFailure } from '../../../core/index.ts'
import {
  createMatchTest,
  type ExactResource,
  escapeSearchValue,
  findCompartmentPatients,
  type IndexEntry,
  indexResource,
  matches,
  parseQuery,
  parseUncounted,
  type Resource,
  Work,
} from '../../../fhir/index.ts'
import { samplePatients } from '../../../sample-patients/index.ts'
import { type Access, type Constraint, satisfies } from '../../../smart/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Repository } from '../repository/repository.ts'
import { openRepository } from '../repository/repository.ts'
import { BASE, createAuthenticator, type Fhir, startFhir } from '../testing/fhir.ts'
import { runQuery } from './planner/run-query.ts'
import { createSearchScope, finish, type SearchScope } from './planner/search-scope.ts'

/**
 * SQL finds exactly the resources that `matches` accepts one by one within the access filter. The test searches
 * the sample patients with random parameters, modifiers and values of stored data.
 */
let folder: string
let fhir: Fhir
let repository: Repository
let access: Access
const resources: Resource[] = []
const byType = new Map<string, Resource[]>()

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'fhir-oracle-'))
  const file = join(folder, 'fhir.db')
  resources.push(...samplePatients({ count: 4, now: Date.parse('2026-01-01T12:00:00Z') }))
  repository = openRepository({ file, baseUrl: BASE })
  const { created, refused } = repository.load(resources)
  assert.deepEqual([created, refused], [resources.length, []])
  for (const it of resources) byType.set(it.resourceType, [...(byType.get(it.resourceType) ?? []), it])
  const guard = createAuthenticator({
    any: { filterFor: (type, permission) => access.filterFor(type, permission) },
  })
  fhir = (await startFhir({ dataFile: file, guard })).as('any')
})
after(async () => {
  await fhir.close()
  repository.close()
  rmSync(folder, { recursive: true })
})

/** A resource that matches by these rules matches on any server. */
function isMatch(resource: Resource, [name, value]: Pair): boolean {
  const isFound = matches(resource, name, value, BASE) === true
  const clause = parseUncounted(resource.resourceType, name, value, BASE)
  if (isFound)
    assert(
      clause.kind !== 'error' && createMatchTest(resource.resourceType, clause, BASE)(resource),
      `${name}=${value}`,
    )
  return isFound
}

type Pair = readonly [name: string, value: string]
const PREFIXES = ['', 'eq', 'ne', 'gt', 'ge', 'lt', 'le', 'sa', 'eb', 'ap']

/** Lists search values that match an index entry. */
function waysTo(entry: IndexEntry, prefix: string, cut: number): readonly Pair[] {
  const { parameter } = entry
  const e = escapeSearchValue
  switch (entry.kind) {
    case 'token': {
      const { system, code, text } = entry
      return [
        ...(code
          ? [
              [parameter, e(code)],
              [`${parameter}:not`, e(code)],
              [parameter, `|${e(code)}`],
            ]
          : []),
        ...(code && system
          ? [
              [parameter, `${e(system)}|${e(code)}`],
              [parameter, `${e(system)}|${e(code)},none`],
            ]
          : []),
        ...(system ? [[parameter, `${e(system)}|`]] : []),
        ...(text ? [[`${parameter}:text`, e(text.slice(0, cut + 1))]] : []),
      ].map(pair => pair as unknown as Pair)
    }
    case 'string':
      return [
        [parameter, e(entry.normal.slice(0, cut + 1))],
        [`${parameter}:contains`, e(entry.normal.slice(cut % entry.normal.length))],
        [`${parameter}:exact`, e(entry.exact)],
      ]
    case 'reference':
      return entry.type && entry.id
        ? [
            [parameter, `${entry.type}/${entry.id}`],
            [parameter, entry.id],
            [parameter, `${BASE}/${entry.type}/${entry.id}`],
          ]
        : []
    case 'date': {
      const time = new Date(Math.min(Math.max(entry.low, -1e13), 1e13)).toISOString()
      return [
        [parameter, prefix + time.slice(0, 10)],
        [parameter, prefix + time.slice(0, 4)],
        [parameter, prefix + time],
      ]
    }
    case 'number':
      return [[parameter, `${prefix}${entry.low}`]]
    case 'quantity':
      return [
        [parameter, `${prefix}${entry.low}`],
        [parameter, `${prefix}${entry.low}|${e(entry.system ?? '')}|${e(entry.code ?? '')}`],
        [parameter, `${prefix}${entry.low}||${e(entry.unit ?? '')}`],
      ]
    case 'uri':
      return [
        [parameter, e(entry.uri)],
        [`${parameter}:below`, e(entry.uri.slice(0, 12))],
        [`${parameter}:above`, `${e(entry.uri)}/x`],
      ]
  }
}

/** A search that some resource matches, and the caller's access filter. */
const searches = fc
  .record({
    at: fc.nat(),
    picks: fc.array(
      fc.record({ entry: fc.nat(), way: fc.nat(), prefix: fc.constantFrom(...PREFIXES), cut: fc.nat(6) }),
      { minLength: 1, maxLength: 3 },
    ),
    missing: fc.constantFrom(undefined, 'true', 'false'),
    limit: fc.constantFrom('none', 'patient', 'granular', 'both', 'either', 'nothing'),
  })
  .map(({ at, picks, missing, limit }) => {
    const resource = resources[at % resources.length] ?? resources[0]
    assert(resource)
    const entries = indexResource(resource, BASE)
    const pairs = picks.flatMap(({ entry, way, prefix, cut }): readonly Pair[] => {
      const chosen = entries[entry % entries.length]
      const ways = chosen ? waysTo(chosen, prefix, cut) : []
      const pair = ways[way % Math.max(ways.length, 1)]
      return pair ? [pair] : []
    })
    const [first] = pairs
    const extra: readonly Pair[] =
      missing === undefined || !first ? [] : [[`${first[0].split(':')[0]}:missing`, missing]]
    return {
      type: resource.resourceType,
      pairs: [...pairs, ...extra],
      limits: limitsOf(resource, limit, first),
    }
  })

function limitsOf(
  resource: Resource,
  kind: string,
  pair: Pair | undefined,
): readonly Constraint[] | undefined {
  const [patient = 'none'] = findCompartmentPatients(resource, BASE)
  const query = pair ? { query: [pair] } : {}
  switch (kind) {
    case 'patient':
      return [{ patient }]
    case 'granular':
      return [query]
    case 'both':
      return [{ patient, ...query }]
    case 'either':
      return [{ patient: 'none' }, { ...query, id: resource.id ?? '' }]
    case 'nothing':
      return []
    default:
      return undefined
  }
}

/** The ids that a search finds if its estimates are so high that no clause starts it. */
function idsThroughAll(type: string, pairs: readonly Pair[]): readonly string[] {
  return search(type, pairs, () => false)
}

function search(type: string, pairs: readonly Pair[], isFew: SearchScope['isFew']): readonly string[] {
  const query = parseQuery([type], [...pairs, ['_count', '1000']], {
    baseUrl: BASE,
    lenient: false,
    work: new Work(),
  })
  assert(!isFailure(query))
  const scope = { ...createSearchScope(repository, access, 's'), isFew, step: 7 }
  const { hits } = finish(runQuery(scope, query, undefined))
  return hits.map(hit => hit.id).toSorted()
}

describe('a chain in SQL', () => {
  const CHAINS: Readonly<Record<string, readonly Pair[]>> = {
    Condition: [
      ['patient.gender', 'female'],
      ['encounter.status', 'finished'],
      ['patient._has:Observation:patient:status', 'final'],
    ],
    Observation: [
      ['subject:Patient.birthdate', 'lt1990'],
      ['encounter.subject:Patient.gender', 'male'],
    ],
    Patient: [
      ['_has:Condition:patient:clinical-status', 'active'],
      ['_has:Observation:patient:encounter.status', 'finished'],
    ],
    Encounter: [
      ['_has:Condition:encounter:patient.gender', 'female'],
      ['participant:Practitioner.name', 'a'],
    ],
  }

  /** The resources at the other end of the chain, which are found in steps. */
  const isFound: SearchScope['isFew'] = ({ text }) => text.includes('json_each')

  it('finds the same resources, whether it starts the search or is evaluated on each resource', () => {
    let found = 0
    for (const filter of ['everything', [{ patient: byType.get('Patient')?.[0]?.id ?? '' }]] as const) {
      access = { filterFor: type => (type === 'Practitioner' ? 'everything' : filter) }
      for (const [type, pairs] of Object.entries(CHAINS))
        for (const pair of pairs) {
          const leading = search(type, [pair], () => true)
          for (const isFew of [() => false, isFound])
            assert.deepEqual(search(type, [pair], isFew), leading, pair.join('='))
          const all = search(type, [], () => true)
          assert(all.length >= leading.length)
          found += leading.length
        }
    }
    assert(found > 100, `only ${found} found`)
  })
})

describe('a search in SQL', () => {
  it('finds and counts the matches within the access filter, and no others (ABSENT-4)', async () => {
    let found = 0
    await fc.assert(
      fc.asyncProperty(searches, async ({ type, pairs, limits }) => {
        const filter = limits ?? 'everything'
        access = { filterFor: () => filter }
        const expected = (byType.get(type) ?? [])
          .filter(it => satisfies(it, filter, BASE))
          .filter(it => pairs.every(pair => isMatch(it, pair)))
          .map(it => it.id)
          .toSorted()
        const query = new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString()
        const line = `GET ${type}?${query}`
        const reply = await fhir(`${line}&_count=1000&_elements=id`)
        assert.equal(reply.status, 200, `${line} ${reply.text.slice(0, 300)}`)
        assert.deepEqual(reply.body.entry?.map(it => it.resource?.id ?? '').toSorted() ?? [], expected, line)
        assert.equal((await fhir(`${line}&_summary=count`)).body.total, expected.length, line)
        assert.deepEqual(idsThroughAll(type, pairs), expected, `${line}, going through all`)
        found += expected.length
      }),
      { numRuns: countRuns(600) },
    )
    assert(found > countRuns(500), `only ${found} found: the searches say too little`)
  })
})

describe('a search that filters and sorts by one parameter', () => {
  const PREFIXES = ['eq', 'ne', 'gt', 'lt', 'ge', 'le', 'sa', 'eb', 'ap']
  const DATES = ['2019', '2020-06', '2020-06-15', '2021-01-01']
  const FAMILIES = ['adams', 'baker', 'bak', 'zorn', 'x']
  const QUANTITIES = ['5', '12.5', '40']
  const FILTERS: Readonly<Record<string, readonly Pair[]>> = {
    Encounter: prefixed('date', DATES),
    Goal: prefixed('target-date', DATES),
    Patient: FAMILIES.flatMap((it): readonly Pair[] => [
      ['family', it],
      ['family:exact', it],
      ['family:contains', it],
    ]),
    Observation: prefixed('component-value-quantity', QUANTITIES),
  }
  let own: Repository

  function prefixed(parameter: string, values: readonly string[]): readonly Pair[] {
    return PREFIXES.flatMap(prefix => values.map((value): Pair => [parameter, `${prefix}${value}`]))
  }

  /** Narrow and wide ranges, several values and none. */
  function* listSorted(): Generator<Resource> {
    const dates = [
      '2018',
      '2019-05-05',
      '2020-06',
      '2020-06-15',
      '2020-06-15T10:00:00Z',
      '2021-01-01',
      '2023',
    ]
    const families = ['Adams', 'Baker', 'Bakewell', 'Zorn', 'zorn', 'Xu']
    const pick = <T>(values: readonly T[], at: number) => values[at % values.length] as T
    for (let at = 0; at < 60; at++) {
      const [start, end] = [pick(dates, at), pick(dates, at * 5 + 3)].toSorted()
      const count = at % 4
      const times = <T>(create: (number: number) => T) =>
        Array.from({ length: count }, (_, number) => create(number))
      yield {
        resourceType: 'Encounter',
        id: `e${at}`,
        ...(count > 0 && { period: { start, ...(at % 3 > 0 && { end: at % 3 === 1 ? start : end }) } }),
      }
      yield {
        resourceType: 'Goal',
        id: `g${at}`,
        target: times(number => ({ dueDate: pick(dates, at + number * 3).slice(0, 10) })),
      }
      yield {
        resourceType: 'Patient',
        id: `p${at}`,
        name: times(number => ({ family: pick(families, at * 7 + number) })),
      }
      yield {
        resourceType: 'Observation',
        id: `o${at}`,
        component: times(number => ({ valueQuantity: { value: ((at * 13) % 45) + number / 2 } })),
      }
    }
  }

  before(() => {
    own = openRepository({ file: join(folder, 'sorted.db'), baseUrl: BASE })
    own.database.transaction(() => {
      for (const resource of listSorted())
        own.save(resource as ExactResource, String(resource.id), undefined, 'PUT')
    })
  })
  after(() => own.close())

  /** The ids of all pages in order. */
  function findSorted(type: string, pairs: readonly Pair[], isFew: boolean): readonly string[] {
    const query = parseQuery([type], [...pairs, ['_count', '4']], {
      baseUrl: BASE,
      lenient: false,
      work: new Work(),
    })
    assert(!isFailure(query))
    const scope = {
      ...createSearchScope(own, { filterFor: () => 'everything' }, 's'),
      isFew: () => isFew,
      step: 7,
    }
    const ids: string[] = []
    let after: readonly SqlValue[] | undefined
    do {
      const { hits, next } = finish(runQuery(scope, query, after))
      ids.push(...hits.map(hit => hit.id))
      after = next
    } while (after)
    return ids
  }

  it('finds the same resources in the same order, whether it sorts them or reads the index between the bounds', () => {
    let found = 0
    for (const [type, filters] of Object.entries(FILTERS))
      for (const [filter, value] of filters)
        for (const sort of ['', '-'].flatMap(it => [
          `${it}${filter.split(':')[0]}`,
          `${it}${filter.split(':')[0]},-_id`,
        ])) {
          const pairs: readonly Pair[] = [
            [filter, value],
            ['_sort', sort],
          ]
          const sorted = findSorted(type, pairs, true)
          assert.deepEqual(findSorted(type, pairs, false), sorted, `${type} ${pairs.join(' ')}`)
          found += sorted.length
        }
    assert(found > 1_000, `only ${found} found`)
  })
})

describe('a search by long and unusual texts', () => {
  const LENGTHS = [1, 2, 299, 300, 301, 335, 336, 337, 399, 400, 401, 999, 1_000, 1_001, 1_500]
  const ENDS = ['', 'b', '/', '/b', '\u{10ffff}', '\u{10ffff}b', '😀', '😁b', '\ufffd', 'é']
  const stems = LENGTHS.flatMap(length => ENDS.map(end => 'a'.repeat(length) + end))
  // The index may store a digest of a long text, which must match no other text.
  const TEXTS = [
    ...stems,
    ...['a'.repeat(1_500), 'a'.repeat(401)].flatMap(text =>
      [400, 1_000].map(length => text.slice(0, length - 64) + hash('sha256', text)),
    ),
  ]
  const valueSets = TEXTS.map(
    (text, at): Resource => ({
      resourceType: 'ValueSet',
      id: `v${at}`,
      status: 'active',
      url: text,
      name: text,
      identifier: [{ system: `urn:${text}`, value: text }],
      jurisdiction: [{ text }],
    }),
  )
  const includes = (text: string, value: string) => normal(text).includes(normal(value))
  const isUnder = (text: string, root: string) =>
    text === root || text.startsWith(root.endsWith('/') ? root : `${root}/`)
  // Each parameter with the condition that every found text must meet.
  const WAYS: Readonly<Record<string, (text: string, value: string) => boolean>> = {
    name: (text, value) => normal(text).startsWith(normal(value)),
    'name:exact': (text, value) => text === value,
    'name:contains': includes,
    'jurisdiction:text': (text, value) => normal(text).startsWith(normal(value)),
    identifier: (text, value) => text === value,
    'identifier:not': (text, value) => text !== value,
    url: (text, value) => text === value,
    'url:below': isUnder,
    'url:above': (text, value) => isUnder(value, text),
  }
  const pair = fc.record({
    way: fc.constantFrom(...Object.keys(WAYS)),
    value: fc.constantFrom(...TEXTS),
  })
  let own: Repository

  before(() => {
    own = openRepository({ file: join(folder, 'long.db'), baseUrl: BASE })
    assert.equal(own.load(valueSets).created, TEXTS.length)
  })
  after(() => own.close())

  function normal(text: string): string {
    return text.replaceAll('é', 'e')
  }

  function found(pairs: readonly Pair[], filterFor: Access): readonly string[] {
    const query = parseQuery(['ValueSet'], [...pairs, ['_count', '1000']], {
      baseUrl: BASE,
      lenient: false,
      work: new Work(),
    })
    assert(!isFailure(query))
    const { hits } = finish(runQuery(createSearchScope(own, filterFor, 's'), query, undefined))
    return hits.map(hit => hit.id).toSorted()
  }

  it('compares the whole value, in the index as on the resource alone, and in granular scopes', () => {
    let compared = 0
    fc.assert(
      fc.property(pair, ({ way, value }) => {
        const pair: Pair = [way, escapeSearchValue(value)]
        const granular = [{ query: [pair] }]
        const expected = valueSets.filter(it => matches(it, ...pair, BASE) === true)
        const isTrue = WAYS[way]
        assert(isTrue)
        for (const { url } of expected) assert(isTrue(String(url), value), `${way} finds too much`)
        const ids = expected.map(it => it.id).toSorted()
        assert.deepEqual(found([], { filterFor: () => granular }), ids, `the scope ?${way}=${value}`)
        assert.deepEqual(
          valueSets
            .filter(it => satisfies(it, granular, BASE))
            .map(it => it.id)
            .toSorted(),
          ids,
        )
        if (parseUncounted('ValueSet', ...pair, BASE).kind === 'error') return
        assert.deepEqual(found([pair], { filterFor: () => 'everything' }), ids, `${way}=${value}`)
        compared++
      }),
      { numRuns: countRuns(250) },
    )
    assert(compared > countRuns(100), `only ${compared} could be compared`)
  })

  it('compares all of a value with all of a text for equality', () => {
    for (const way of ['name:exact', 'identifier', 'url'])
      for (const [at, text] of TEXTS.entries())
        assert.deepEqual(found([[way, escapeSearchValue(text)]], { filterFor: () => 'everything' }), [
          `v${at}`,
        ])
  })
})
