import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startHapi } from '../testing/hapi/start-hapi.ts'
import { startMedplum } from '../testing/medplum-upstream.ts'
import { startUpstream } from '../testing/start-gateway.ts'
import { checkUpstream, recommendSettings } from './check-upstream.ts'
import { findIds, type Level, type Send } from './probe.ts'

const settings = {
  'upstream-profile': 'auto',
  'upstream-narrowing': 'auto',
  'upstream-search-cache': 'bypass',
} as const

const sendTo =
  (baseUrl: string): Send =>
  async ({ path, body, ...request }) => {
    const response = await fetch(baseUrl + path, { ...request, ...(body !== undefined && { body }) })
    const headers = Object.fromEntries(response.headers)
    return { status: response.status, headers, text: await response.text(), milliseconds: 1 }
  }

async function check(baseUrl: string, isWriting = true) {
  const { sign, findings, left } = await checkUpstream({ send: sendTo(baseUrl), baseUrl, isWriting })
  for (const type of ['Patient', 'Observation']) {
    const headers = { 'cache-control': 'no-cache' }
    const found = await sendTo(baseUrl)({ method: 'GET', path: `/${type}?_count=100`, headers })
    assert.deepEqual(findIds(found), [], type)
  }
  const named = (level: Level) => findings.filter(it => it.level === level).map(it => it.check)
  return { sign, findings, left, named }
}

describe('recommendSettings', () => {
  const R4 = [
    'FHIR version',
    'search results',
    'If-Match on PUT',
    'If-None-Match: * on PUT',
    'If-Match on DELETE',
    'conditions in a transaction',
    'own absolute URL in a body',
  ]
  const recommend = (levels: Readonly<Record<string, Level>>, sign?: string) => {
    const findings = Object.entries(levels).map(([check, level]) => ({ check, level, result: '' }))
    return recommendSettings({ sign, findings }, settings)[0]?.recommended
  }
  const allOk = Object.fromEntries(R4.map(check => [check, 'ok' as const]))

  it('calls only a server strict that passes every check of R4', () => {
    assert.equal(recommend({ ...allOk, 'create only by If-Match: W/"0"': 'handled' }), 'strict')
    for (const check of R4)
      for (const level of ['handled', 'unsafe', 'unknown'] as const)
        assert.notEqual(recommend({ ...allOk, [check]: level }), 'strict', `${check} ${level}`)
  })

  it('recommends post-only where auto would take the profile of HAPI, and it is not safe', () => {
    const ignoresBoth = {
      ...allOk,
      'If-None-Match: * on PUT': 'handled' as const,
      'create only by If-Match: W/"0"': 'handled' as const,
    }
    assert.equal(recommend(ignoresBoth), 'auto')
    assert.equal(recommend(ignoresBoth, 'its header X-Powered-By'), 'post-only')
  })
})

describe('checkUpstream', () => {
  it('finds nothing unsafe in the embedded server, and recommends the profile strict (CLI-6)', async () => {
    const upstream = await startUpstream()
    try {
      const { sign, findings, left, named } = await check(upstream.url)
      assert.deepEqual(
        [left, named('handled'), named('unsafe')],
        [[], ['create only by If-Match: W/"0"', 'DELETE by the version in the URL'], []],
      )
      const [profile] = recommendSettings({ sign, findings }, settings)
      assert.equal(profile?.recommended, 'strict')
    } finally {
      await upstream.end()
    }
  })

  it('finds the behaviour of HAPI, and recommends the profile hapi and search parameters (CLI-6)', async () => {
    const upstream = await startHapi()
    try {
      const { sign, findings, left, named } = await check(upstream.url)
      assert.deepEqual([left, named('unsafe')], [[], []])
      assert.deepEqual(named('handled'), [
        'compartment searches',
        'two lower bounds of a date',
        'search results',
        'If-None-Match: * on PUT',
        'If-Match on DELETE',
        'own absolute URL in a body',
        'own absolute URL in a search',
        'dates by year and month',
        'history after a delete',
        'numeric ids',
      ])
      assert.deepEqual(
        recommendSettings({ sign, findings }, settings).map(it => it.recommended),
        ['hapi', 'parameter', 'bypass'],
      )
      const unsafe = {
        ...settings,
        'upstream-profile': 'strict' as const,
        'upstream-narrowing': 'compartment',
      }
      assert.deepEqual(
        recommendSettings({ sign, findings }, unsafe).flatMap(it => it.unsafe ?? []),
        ['the upstream differs from R4', 'limited searches fail'],
      )
    } finally {
      await upstream.close()
    }
  })

  it('reports that the router of Medplum ignores versions in transactions and creates over existing resources', async () => {
    const upstream = await startMedplum()
    try {
      const { sign, findings, left, named } = await check(upstream.url)
      assert.deepEqual([left, named('unsafe')], [[], ['FHIR version', 'conditions in a transaction']])
      assert.deepEqual(named('handled'), [
        'compartment searches',
        'If-None-Match: * on PUT',
        'create only by If-Match: W/"0"',
        'If-Match on DELETE',
        'DELETE by the version in the URL',
        'history after a delete',
      ])
      for (const profile of ['auto', 'post-only', 'if-none-match'] as const) {
        const [found] = recommendSettings({ sign, findings }, { ...settings, 'upstream-profile': profile })
        assert.equal(found?.recommended, 'auto')
        const isUnsafe = /^a PUT can overwrite a resource/.test(found?.unsafe ?? '')
        assert.equal(isUnsafe, profile === 'if-none-match', profile)
      }
    } finally {
      await upstream.close()
    }
  })

  it('recognizes HAPI behind a proxy that hides its name or refuses metadata', async () => {
    for (const [by, options] of Object.entries({
      'its header X-Powered-By': { on: ['metadata-refused'] },
      'the code in an error message': { off: ['named-software', 'powered-by'] },
    } as const)) {
      const upstream = await startHapi(options)
      try {
        const { sign, findings, named } = await check(upstream.url)
        assert.equal(sign, by)
        assert.deepEqual(named('unsafe'), [], by)
        const [profile] = recommendSettings({ sign, findings }, settings)
        assert.deepEqual([profile?.recommended, profile?.unsafe], ['hapi', undefined], by)
      } finally {
        await upstream.close()
      }
    }
  })

  it('creates nothing without permission (CLI-6)', async () => {
    const upstream = await startHapi()
    try {
      const { named } = await check(upstream.url, false)
      assert.equal(upstream.seen.filter(it => it.method !== 'GET' && !it.path.endsWith('_search')).length, 0)
      assert.ok(named('unknown').includes('If-Match on PUT'))
    } finally {
      await upstream.close()
    }
  })
})
