import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import {
  type Fhir,
  NOT_WITHIN,
  readIds,
  readIssue,
  readNextLink,
} from '../../backends/sqlite/testing/fhir.ts'
import { type Capability, type DefineTest, needs, type TestTarget } from './target.ts'
import { startTwoPatients } from './two-patients.ts'

/** Searches and histories within a grant. */
export function testSearchesWithin(target: TestTarget): void {
  const { start } = target
  const it = needs(target)
  let fhir: Fhir
  let ann: Fhir
  before(async () => {
    ;({ fhir, ann } = await startTwoPatients(start))
  })
  after(() => fhir.close())

  describe('a search within a compartment', () => {
    /** Matches and includes that the patient's app finds. */
    const FINDS: Readonly<Record<string, string>> = {
      Patient: 'ann',
      'Patient?_id=bob': '',
      Condition: 'ca',
      'Condition?patient=bob': '',
      'Condition?subject=Patient/bob': '',
      'Condition?_id=cb': '',
      'Condition?_sort=-recorded-date': 'ca',
      'Patient/bob/Condition': '',
      'Patient/ann/Condition': 'ca',
      Observation: 'about-ob oa oa-lab',
      'Observation?focus=Patient/ann': '',
      'Observation?_id=about-ob&_include=Observation:has-member': 'about-ob',
      'Observation?_id=about-ob&_include=Observation:*': 'about-ob ann',
      'Patient?_revinclude=Condition:patient': 'ann ca',
      'Observation?_id=oa&_revinclude=Observation:has-member': 'oa',
      'Condition?patient.name=bob': '',
      'Condition?patient.name=ann': 'ca',
      'Observation?has-member.subject=Patient/bob': '',
      'Observation?has-member.status=final': '',
      'Patient?_has:Condition:patient:recorded-date=2021': '',
      'Practitioner?_has:Patient:general-practitioner:name=ann': 'dr',
      'Observation?_has:Observation:has-member:status=final': '',
    }
    const FINDS_BY: readonly (readonly [readonly Capability[], Readonly<Record<string, string>>])[] = [
      [
        ['reference-lists'],
        {
          'Condition?patient=ann,bob': 'ca',
          'Patient?_id=ann,bob': 'ann',
        },
      ],
      [
        ['search-all-types'],
        {
          '?_type=Patient,Condition,Practitioner': 'ann ca dr',
        },
      ],
      [
        ['includes'],
        {
          'Patient?_include:iterate=Patient:link&_revinclude:iterate=Patient:link': 'ann',
          'Observation?_id=oa&_revinclude:iterate=Observation:has-member&_include:iterate=Observation:subject':
            'ann oa',
        },
      ],
      [
        ['includes'],
        {
          'Practitioner?_revinclude=Patient:general-practitioner&_revinclude:iterate=Condition:patient':
            'ann ca dr',
        },
      ],
      [
        ['everything'],
        {
          'Patient/ann/$everything': 'about-ob ann ca dr oa oa-lab',
        },
      ],
    ]
    needs(target, 'whole-compartments')("finds nothing in another patient's whole compartment", async () => {
      const reply = await ann('GET Patient/bob/*')
      assert.deepEqual([reply.status, reply.body.total, readIds(reply)], [200, 0, []])
    })

    const findsWith = (define: DefineTest, finds: Readonly<Record<string, string>>) => {
      for (const [url, found] of Object.entries(finds))
        define(`finds ${found || 'nothing'} by ${url} (PATIENT-4, ABSENT-4)`, async () => {
          const reply = await ann(`GET ${url}`)
          assert.equal(reply.status, 200, reply.text)
          assert.deepEqual(
            [...readIds(reply), ...readIds(reply, 'include')].toSorted(),
            found.split(' ').filter(Boolean),
          )
          assert.equal(reply.body.total, readIds(reply).length)
          const counted = await ann(`GET ${url}${url.includes('?') ? '&' : '?'}_summary=count`)
          if (!url.includes('$')) assert.equal(counted.body.total, readIds(reply).length)
        })
    }
    findsWith(it, FINDS)
    for (const [capabilities, finds] of FINDS_BY) findsWith(needs(target, ...capabilities), finds)

    it('applies a granular scope to matches, counts, includes and sorting (GRANULAR-2)', async () => {
      const limited = fhir.as('vitals')
      assert.deepEqual(readIds(await limited('GET Observation?_sort=-date')), ['oa'])
      assert.equal((await limited('GET Observation?_summary=count')).body.total, 1)
      const brought = await limited('GET Observation?_include=Observation:subject')
      assert.deepEqual(readIds(brought, 'include'), [])
      assert.equal((await fhir.as('unreadable')('GET Observation?_summary=count')).body.total, 0)
    })

    needs(target, 'paging')(
      'returns the next page if a client adds _count, _format and _total to the link',
      async () => {
        for (const caller of [ann, fhir.as('all'), fhir.as('noPatients')]) {
          const all = readIds(await caller('GET Observation?_sort=_id'))
          const first = await caller('GET Observation?_sort=_id&_count=1')
          const added = await caller(`GET ${readNextLink(first)}&_count=1&_format=json&_total=accurate`)
          assert.deepEqual([readIds(first), readIds(added)], [all.slice(0, 1), all.slice(1, 2)], added.text)
          assert.equal((await caller(`GET ${readNextLink(first)}&code=x`)).status, 400)
        }
      },
    )

    needs(target, 'includes')(
      'includes every referenced and every referring resource with * (FHIR-13)',
      async () => {
        for (const caller of [ann, fhir.as('all')]) {
          const forward = await caller('GET Observation?_id=about-ob&_include=*')
          const named = await caller('GET Observation?_id=about-ob&_include=Observation:*')
          assert.deepEqual(readIds(forward, 'include').toSorted(), readIds(named, 'include').toSorted())
          assert.ok(readIds(forward, 'include').includes('ann'), forward.text)
        }
        const back = await ann('GET Patient?_id=ann&_revinclude=*')
        assert.deepEqual(readIds(back, 'include').toSorted(), ['about-ob', 'ca', 'oa', 'oa-lab'])
        assert.deepEqual(readIds(await fhir.as('vitals')('GET Observation?_include=*'), 'include'), [])
        assert.equal((await ann('GET Patient?_include:iterate=*')).status, 400)
      },
    )

    it('evaluates no chain over a type outside the grant', async () => {
      const blind = fhir.as('noPatients')
      assert.equal((await blind('GET Condition?_summary=count')).body.total, 3)
      for (const search of ['Condition?', '?_type=Condition&'])
        assert.equal((await blind(`GET ${search}patient.name=ann&_summary=count`)).body.total, 0, search)
      assert.equal(
        (await blind('GET Practitioner?_has:Patient:general-practitioner:name=ann&_summary=count')).body
          .total,
        0,
      )
      assert.deepEqual(readIds(await blind('GET Condition?_id=ca&_include=Condition:patient'), 'include'), [])
    })
  })

  describe('a history within a compartment', () => {
    needs(
      target,
      'history',
      'numbered-versions',
    )('returns and counts only versions inside', async () => {
      const type = await ann('GET Condition/_history')
      const shown = type.body.entry?.map(it => `${it.fullUrl?.split('/').at(-1)} ${it.response?.etag}`)
      assert.deepEqual(shown, ['gone-a W/"2"', 'gone-a W/"1"', 'ca W/"1"'])
      assert.equal(type.body.total, 3)
      assert.equal(readIssue(await ann('GET Condition/moved/_history')), NOT_WITHIN)
      const now = await fhir.as('bob')('GET Condition/moved/_history')
      assert.deepEqual(
        now.body.entry?.map(it => it.response?.etag),
        ['W/"3"', 'W/"1"'],
      )
      const system = await ann('GET _history?_count=500')
      const subjects = system.body.entry?.flatMap(it => it.resource?.subject ?? [])
      assert(subjects?.every(it => JSON.stringify(it) === '{"reference":"Patient/ann"}'))
      assert.doesNotMatch(JSON.stringify(system.body.entry), /Condition\/moved/)
      const entry = ['Condition/moved/_history', 'Condition/moved/_history/2', 'Condition/_history'].map(
        url => ({
          request: { method: 'GET', url },
        }),
      )
      const batch = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry })
      assert.doesNotMatch(JSON.stringify(batch.body), /Condition\/moved/)
      assert.deepEqual(
        batch.body.entry?.map(it => it.response?.status.slice(0, 3)),
        ['403', '403', '200'],
      )
    })

    needs(
      target,
      'history',
      'numbered-versions',
    )(
      'shows the versions from before a resource went to another patient, where the settings say so (ABSENT-5)',
      async () => {
        const own = await startTwoPatients(start, 'version')
        const type = await own.ann('GET Condition/_history')
        const shown = type.body.entry?.map(it => `${it.fullUrl?.split('/').at(-1)} ${it.response?.etag}`)
        assert.deepEqual(shown, ['gone-a W/"2"', 'gone-a W/"1"', 'moved W/"2"', 'ca W/"1"'])
        const instance = await own.ann('GET Condition/moved/_history')
        assert.deepEqual(
          instance.body.entry?.map(it => it.response?.etag),
          ['W/"2"'],
        )
        for (const [version, status] of [403, 200, 403, 403].entries())
          assert.equal((await own.ann(`GET Condition/moved/_history/${version + 1}`)).status, status)
        await own.fhir.close()
      },
    )

    it('responds in the same way for outside and absent resources', async () => {
      assert.equal(readIssue(await ann('GET Condition/cb/_history')), NOT_WITHIN)
      assert.equal(readIssue(await ann('GET Condition/none/_history')), NOT_WITHIN)
    })

    needs(target, 'history')('checks the content of each version against a granular scope', async () => {
      const reply = await fhir.as('vitals')('GET Observation/_history')
      assert.deepEqual(
        reply.body.entry?.map(it => it.resource?.id),
        ['oa'],
      )
      assert.equal(reply.body.total, 1)
      assert.equal((await fhir.as('unreadable')('GET Observation/_history')).body.total, 0)
    })
  })
}
