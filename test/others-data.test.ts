import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readRights, rightsReach } from '../src/consent/index.ts'
import type { Resource } from '../src/fhir/index.ts'
import { fhirServer } from '../src/fhir-server/index.ts'
import { gateway } from '../src/gateway/index.ts'
import { freePorts } from './support/free-ports.ts'
import { ADMIN, type Asking, type GuardedFhir, startGuardedFhir } from './support/guarded-fhir.ts'
import type { OpenGuarded } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const dataOf = (id: string, organization: string): readonly Resource[] => [
  {
    resourceType: 'Patient',
    id,
    name: [{ family: id }],
    managingOrganization: to(`Organization/${organization}`),
  },
  { resourceType: 'CareTeam', id: `t-${id}`, status: 'active', subject: to(`Patient/${id}`) },
  { resourceType: 'Condition', id: `c-${id}`, subject: to(`Patient/${id}`), code: { text: 'x' } },
  ...['lab', 'vital', 'other'].map(code => ({
    ...{ resourceType: 'Observation', id: `${code}-${id}`, status: 'final', code: { text: 'x' } },
    ...{
      subject: to(`Patient/${id}`),
      performer: [to('Practitioner/dr')],
      category: [{ coding: [{ code }] }],
    },
  })),
]

const OWN = [
  { resourceType: 'Organization', id: 'north', name: 'North' },
  { resourceType: 'Organization', id: 'south', name: 'South' },
  { resourceType: 'Practitioner', id: 'dr' },
  ...dataOf('ann', 'north'),
]
const rights = readRights({
  rules: [
    { clinicians: ['Practitioner/lee'], organizations: ['north'], careTeams: 'own' },
    { clinicians: ['Practitioner/kim'], patients: ['ann'] },
    { clinicians: ['Practitioner/max'], careTeams: ['t-ann'] },
  ],
})
assert(!('problem' in rights))

const by = (id: string, scope: string): Asking => ({ scope, fhirUser: `Practitioner/${id}`, sub: id })
const EITHER = 'Observation.rs?category=lab user/Observation.rs?category=vital'
const CALLERS: Readonly<Record<string, Asking>> = {
  'a clinician of an organization': by('lee', 'user/*.cruds'),
  'a clinician of a care team': by('max', 'user/*.cruds'),
  'a clinician of one patient': by('kim', 'user/*.cruds'),
  'a clinician for two kinds of data': by('lee', `user/Condition.rs user/${EITHER}`),
  'an app of one patient': { scope: 'patient/*.cruds', patient: 'ann' },
}

// With and without Ben's data: what is asked of them, and beside them.
const LINES = [
  ...['', '/_history', '/_history?_count=1', '/_history/1', '/_history/2'].flatMap(tail =>
    ['Patient/ben', 'Condition/c-ben', 'Observation/lab-ben', 'CareTeam/t-ben'].map(
      it => `GET /${it}${tail}`,
    ),
  ),
  ...['', '?_count=1', '?_summary=count', '?_total=accurate&_count=1', '?_sort=-_id'].flatMap(tail =>
    [
      'Patient',
      'Condition',
      'Observation',
      'CareTeam',
      'Patient/ben/Condition',
      'Patient/ben/*',
      'Patient/ann/*',
    ].map(it => `GET /${it}${tail}`),
  ),
  ...[
    'Condition/_history',
    'Condition/_history?_count=1',
    '_history?_count=2',
    'Patient/ben/$everything',
  ].map(it => `GET /${it}`),
  'GET /?_type=Patient,Condition&_count=1',
  'GET /Condition?patient=ben',
  'GET /Condition?patient=ann,ben&_include=Condition:patient',
  'GET /Condition?patient.name=ben',
  'GET /Patient?_id=ben',
  'GET /Patient?name=ben',
  'GET /Patient?organization=south',
  'GET /Patient?_has:Condition:patient:_id=c-ben',
  'GET /Patient?_revinclude=Observation:subject',
  'GET /Practitioner?_has:Observation:performer:patient=ben',
  'GET /Practitioner?_revinclude=Observation:performer',
  'GET /Organization?_revinclude=Patient:organization',
  'DELETE /Condition/c-ben',
  'DELETE /Condition?_id=c-ben',
]

/** A gateway whose upstream counts what it is asked. */
async function startCounted(resources: readonly Resource[]) {
  let times = 0
  const open: OpenGuarded = async (guard, baseUrl) => {
    const [port = 0] = await freePorts(1)
    const upstreamUrl = `http://127.0.0.1:${port}/upstream`
    const upstream = await fhirServer({ baseUrl: upstreamUrl, dataFile: ':memory:', smartConfiguration: {} })
    upstream.addHook('onRequest', (request, _reply, done) => {
      if (!request.url.endsWith('/metadata')) times += 1
      done()
    })
    await upstream.listen({ port, host: '127.0.0.1' })
    const app = await gateway({ baseUrl, upstreamUrl, guard, smartConfiguration: {} })
    app.addHook('onClose', () => upstream.close())
    return app
  }
  const policy = { userReach: rightsReach(rights as Exclude<typeof rights, { readonly problem: string }>) }
  const fhir = await startGuardedFhir(resources, policy, open)
  return { fhir, times: () => times }
}

describe('what others have', () => {
  let worlds: readonly { readonly fhir: GuardedFhir; times(): number }[]
  before(async () => {
    const ben = dataOf('ben', 'south')
    worlds = [await startCounted(OWN), await startCounted([...OWN, ...ben])]
    for (const it of ben)
      await worlds[1]?.fhir.ask(`PUT /${it.resourceType}/${it.id}`, ADMIN, { ...it, language: 'en' })
  })
  after(() => Promise.all(worlds.map(it => it.fhir.close())))

  async function told(line: string, caller: Asking): Promise<readonly string[]> {
    const answers: string[] = []
    for (const { fhir, times } of worlds) {
      const from = times()
      const { status, text } = await fhir.ask(line, caller)
      const known = text
        .replace(/_gateway-page=[\w.-]+/g, 'page')
        .replace(/"last(?:Updated|Modified)":"[^"]+"/g, '')
      answers.push(`${status} after ${times() - from} requests: ${known}`)
    }
    return answers
  }

  for (const [name, caller] of Object.entries(CALLERS))
    it(`changes neither an answer to ${name} nor how often the upstream is asked`, async () => {
      for (const line of LINES) {
        const [without, withThem] = await told(line, caller)
        assert.equal(withThem, without, line)
      }
    })
})
