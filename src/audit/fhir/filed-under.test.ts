import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type Bundle, condition, describeAudited } from '../testing/audited-fhir.ts'

describeAudited('an event', ({ ask, newest, recordsBy, findEventId }) => {
  it('names the patient whose record a caller without a patient read', async () => {
    await ask('PUT Condition/c1', condition('c1', 'juniper'))
    assert.equal((await newest())?.patient_id, 'juniper')
    await ask('GET Condition/c1')
    assert.equal((await newest())?.patient_id, 'juniper')
    await ask('GET Condition?patient=Patient/ashlar')
    assert.equal((await newest())?.patient_id, null, 'nothing was found')
    await ask('GET Condition')
    assert.equal((await newest())?.patient_id, 'juniper')
  })

  it('is filed under the patient whose data was read or changed, not under the launched patient (AUDIT-5)', async () => {
    await ask('PUT Condition/c2', condition('c2', 'ashlar'))
    const seen: readonly (readonly [line: string, patient: string | null, patients: string | null])[] = [
      ['GET Condition/c2', 'ashlar', null],
      ['GET Condition/c2?_elements=code', 'ashlar', null],
      ['GET Condition?_id=c2', 'ashlar', null],
      ['GET Condition?_id=c2&_elements=code', 'ashlar', null],
      ['GET Patient?_id=ashlar', 'ashlar', null],
      ['GET Condition?subject:Patient=ashlar', 'ashlar', null],
      ['GET Condition?patient._id=ashlar', 'ashlar', null],
      ['GET Condition/c2/_history', 'ashlar', null],
      ['GET Patient/ashlar/Condition', 'ashlar', null],
      ['GET Condition?patient=ashlar,juniper&_sort=_id', null, ' juniper ashlar '],
      ['GET Condition?patient=ashlar,nobody', null, ' ashlar * '],
      ['GET Condition?_id=c2,c9', null, ' ashlar * '],
      ['GET Condition?_id=c9', null, null],
      ['GET Condition/c9', null, null],
      ['GET Observation/o-of-ashlar', null, null],
      ['GET Observation?patient=ashlar', null, null],
      ['GET Condition?_id=c2&_summary=count', null, null],
    ]
    for (const who of ['launched', 'everyone'])
      for (const [line, patient_id, patients] of seen) {
        await ask(line, undefined, who)
        const kept = await newest()
        assert.deepEqual([kept?.patient_id, kept?.patients], [patient_id, patients], `${who} ${line}`)
      }
    await ask('GET Observation?patient=juniper', undefined, 'launched')
    assert.equal((await newest())?.patient_id, 'juniper', 'refused, of the patient of the token')
  })

  it('names the patient of a written, moved or deleted resource, whatever the response', async () => {
    const readPatient = async (line: string, body?: unknown) => {
      assert.ok((await ask(line, body, 'launched')).status < 300, line)
      const records = await recordsBy({ limit: 10 })
      const ofLast = records.filter(it => it.request_id === records[0]?.request_id)
      return ofLast.map(it => it.patients ?? it.patient_id).join(' and ')
    }
    assert.equal(await readPatient('POST Condition', condition('x', 'ashlar')), 'ashlar')
    assert.equal(await readPatient('PUT Condition/moved', condition('moved', 'ashlar')), 'ashlar')
    assert.equal(
      await readPatient('PUT Condition/moved', condition('moved', 'juniper')),
      'ashlar and juniper',
    )
    assert.equal(await readPatient('DELETE Condition/moved'), 'juniper')
    await ask('PUT Condition/gone', condition('gone', 'ashlar'))
    assert.equal(await readPatient('DELETE Condition?_id=gone'), 'ashlar')
    assert.equal(await readPatient('GET Condition/gone/_history'), 'ashlar')
  })

  it('shows a patient no event about another one, and every event to callers with full access (AUDIT-5)', async () => {
    const requests = async (who: string, query: string) => {
      const { entry = [] } = (await ask(`GET ${query}`, undefined, who)).body as Bundle
      const entities = entry.flatMap(({ resource }) => resource.entity as { query?: string }[])
      return entities.flatMap(({ query }) => (query ? [Buffer.from(query, 'base64').toString()] : []))
    }
    // Refused, and found nothing: other users with access to the same patient must not learn which patients were
    // requested.
    const vain = ['GET Patient/ashlar', 'GET Condition?patient=ashlar', 'GET Patient?_id=ashlar']
    for (const line of vain) await ask(line, undefined, 'juniper')
    await ask('GET Condition/c1', undefined, 'juniper')
    const juniper = await requests('juniper', 'AuditEvent?_count=1000')
    assert.ok(juniper.includes('GET Condition/c1'))
    for (const line of juniper) assert.doesNotMatch(line, /c2|ashlar|gone/, line)
    const all = await requests('everyone', 'AuditEvent?patient=juniper&_count=1000')
    // An id without a digit may be a name that somebody typed.
    for (const line of vain) assert.ok(all.includes(line.replace('_id=ashlar', '_id=…')), line)
    const ashlar = await requests('ashlar', 'AuditEvent?_count=1000')
    assert.ok(ashlar.includes('GET Condition/c2'))
    assert.ok(!ashlar.some(line => line.includes('juniper')))
    for (const query of ['AuditEvent?patient=ashlar&_count=1000', 'Patient/ashlar/AuditEvent?_count=1000']) {
      const all = await requests('everyone', query)
      for (const line of ['GET Condition/c2', 'GET Condition?patient=ashlar,juniper&_sort=_id'])
        assert.ok(all.includes(line), `${query}: ${line}`)
    }
    const [several] = await recordsBy({ patients: ['ashlar'], limit: 1000 }).then(list =>
      list.filter(it => it.patients !== null),
    )
    const id = await findEventId(several)
    assert.equal((await ask(`GET AuditEvent/${id}`, undefined, 'ashlar')).status, 403)
    assert.equal((await ask(`GET AuditEvent/${id}`)).status, 200)
    const strange = await recordsBy({ patients: ['%', 'ASHLAR', 'ash', '*x'], limit: 1000 })
    assert.equal(strange.length, 0)
  })

  it('records a batch as a batch under all its patients, and a compartment not as a resource', async () => {
    const request = (url: string) => ({ request: { method: 'GET', url } })
    const entry = [request('Condition/c1'), request('Condition/c2')]
    await ask('POST ', { resourceType: 'Bundle', type: 'batch', entry }, 'launched')
    const [last, first, batch] = await recordsBy({ limit: 3 })
    assert.deepEqual([last?.patient_id, first?.patient_id], ['ashlar', 'juniper'])
    assert.deepEqual([batch?.interaction, batch?.patients], ['batch', ' juniper ashlar '])
    const written = [{ resource: condition('c3', 'ashlar'), request: { method: 'PUT', url: 'Condition/c3' } }]
    await ask('POST ', { resourceType: 'Bundle', type: 'transaction', entry: written }, 'launched')
    const [one, whole] = await recordsBy({ limit: 2 })
    assert.deepEqual(
      [one?.patient_id, whole?.interaction, whole?.patient_id],
      ['ashlar', 'transaction', 'ashlar'],
    )
    await ask('GET Patient/ashlar/Condition')
    const kept = await newest()
    assert.deepEqual([kept?.resource_type, kept?.resource_id], ['Condition', null])
  })
})
