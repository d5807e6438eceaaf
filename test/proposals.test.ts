import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { isFailure } from '../src/core/index.ts'
import type { Resource } from '../src/fhir/index.ts'
import {
  createProposals,
  OPEN_OF_CLIENT,
  OPEN_OF_GRANT,
  OPEN_OF_USER,
  PROPOSAL_CHARACTERS,
  REASON_CHARACTERS,
} from '../src/proposals/index.ts'
import { createSealer } from '../src/store/index.ts'
import { startMcp } from './support/mcp.ts'

const WRITER = {
  scope: 'patient/Patient.rs patient/Condition.cruds patient/Observation.rs',
  patient: 'ann',
  jti: 'grant-1.a',
}

const condition = (id: string, patient: string): Resource => ({
  resourceType: 'Condition',
  id,
  subject: { reference: `Patient/${patient}` },
  clinicalStatus: {
    coding: [{ system: 'http://terminology.hl7.org/CodeSystem/condition-clinical', code: 'active' }],
  },
  code: { text: 'Cough' },
})

const mcp = await startMcp([
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'ben' },
  condition('of-ann', 'ann'),
  condition('of-ben', 'ben'),
])
after(() => mcp.close())

const RESOLVE = [{ op: 'replace', path: '/clinicalStatus/coding/0/code', value: 'resolved' }]
const patchOf = (reference: string) => ({ action: 'patch', reference, patch: RESOLVE, reason: 'It is over' })

const readText = (result: { readonly content?: readonly { readonly text: string }[] }) =>
  result.content?.[0]?.text ?? ''

async function countRows(): Promise<number> {
  return (await mcp.store.db.selectFrom('proposal').select('id').execute()).length
}

async function clear(): Promise<void> {
  await mcp.store.db.deleteFrom('proposal').execute()
}

/** By as many grants as it takes, until an assistant has this many open. The next is refused. */
async function proposeByGrants(client_id: string, most: number): Promise<void> {
  const countOwn = async () =>
    (await mcp.store.db.selectFrom('proposal').select('id').where('client_id', '=', client_id).execute())
      .length
  for (let made = await countOwn(); made < most; made += 1) {
    const claims = { ...WRITER, client_id, jti: `${client_id}-${Math.floor(made / 10)}.a` }
    assert.equal((await mcp.call('propose_change', patchOf('Condition/of-ann'), claims)).isError, undefined)
  }
  const claims = { ...WRITER, client_id, jti: `${client_id}-more.a` }
  const refused = readText(await mcp.call('propose_change', patchOf('Condition/of-ann'), claims))
  assert.match(refused, /There are (50|100) open proposals, which is the most/)
  assert.equal(await countOwn(), most)
}

describe('propose_change', () => {
  it('is offered to an assistant that may write for a person, all seven tools in less than 2,000 tokens (MCP-4)', async () => {
    const list = async (claims: object) =>
      (await mcp.request('tools/list', {}, claims)).body.result?.tools ?? []
    const all = await list(WRITER)
    assert.deepEqual(
      all.map(it => it.name),
      [
        'get_patient_summary',
        'search',
        'read',
        'describe_type',
        'list_types',
        'propose_change',
        'list_proposals',
      ],
    )
    assert.ok(JSON.stringify(all).length < 4 * 2_000, String(JSON.stringify(all).length))
    for (const other of [
      { ...WRITER, scope: 'patient/*.rs' },
      { scope: 'system/*.cruds', patient: undefined, sub: 'service', client_id: 'service', jti: 'x.y' },
    ])
      assert.equal(
        (await list(other)).some(it => it.name === 'propose_change'),
        false,
      )
  })

  it('keeps a change and writes nothing (PROPOSAL-1)', async () => {
    const before = await mcp.fetch('/Condition/of-ann', WRITER)
    const made = await mcp.call('propose_change', patchOf('Condition/of-ann'), WRITER)
    const { proposal } = made.structuredContent ?? {}
    assert.match(readText(made), /open until .* Nothing was written\..*\/proposals\//)
    assert.deepEqual(await mcp.fetch('/Condition/of-ann', WRITER), before)
    const { structuredContent } = await mcp.call('list_proposals', {}, WRITER)
    assert.deepEqual(structuredContent, {
      proposals: [{ proposal, action: 'patch', reference: 'Condition/of-ann', state: 'open' }],
    })
    const row = await mcp.store.db.selectFrom('proposal').selectAll().executeTakeFirstOrThrow()
    assert.deepEqual(
      [row.clinician_id, row.client_id, row.grant_id, row.patient_id, row.state],
      ['c-1', 'app', 'grant-1', 'ann', 'open'],
    )
    assert(!JSON.stringify(row).includes('over'))
    await clear()
  })

  it('keeps the digits of decimals', async () => {
    const text = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'propose_change',
        arguments: {
          action: 'create',
          type: 'Condition',
          resource: {
            ...condition('x', 'ann'),
            onsetAge: { value: 7.25, unit: 'years', system: 'http://unitsofmeasure.org', code: 'a' },
          },
          reason: 'Found',
        },
      },
    })
    const { body } = await mcp.send(text.replace('7.25', '7.250'), WRITER, {
      'mcp-protocol-version': '2025-06-18',
    })
    assert.equal(body.result?.isError, undefined, JSON.stringify(body))
    const row = await mcp.store.db.selectFrom('proposal').selectAll().executeTakeFirstOrThrow()
    const { createSealer } = await import('../src/store/index.ts')
    const change = createSealer('secret').open(row.change_sealed, {
      table: 'proposal',
      column: 'change_sealed',
      row: row.id,
    })
    assert.match(change, /7\.250/)
    await clear()
  })

  it('is decided, validated and checked like the write that it stands for (PROPOSAL-2)', async () => {
    const refused = async (given: object, pattern: RegExp, claims: object = WRITER) => {
      const result = await mcp.call('propose_change', { reason: 'Why', ...given }, claims)
      assert.equal(result.isError, true, JSON.stringify(given))
      assert.match(readText(result), pattern)
    }
    const resource = condition('of-ann', 'ann')
    const reference = 'Condition/of-ann'
    await refused({ action: 'update', reference, resource: { ...resource, code: 'x' } }, /code/)
    await refused({ action: 'update', reference, resource: { ...resource, id: 'b' } }, /id/)
    await refused(
      { action: 'create', type: 'Condition', resource: condition('x', 'ben') },
      /outside of your access/,
    )
    await refused({ action: 'patch', reference, patch: [{ op: 'replace', path: '/no', value: 1 }] }, /no/)
    await refused({ action: 'patch', reference, resource }, /patch/)
    await refused({ action: 'create', reference, resource }, /type/)
    await refused({ action: 'delete', type: 'Condition' }, /reference/)
    await refused(
      {
        action: 'create',
        type: 'Condition',
        resource: { ...resource, note: [{ text: 'x'.repeat(PROPOSAL_CHARACTERS) }] },
      },
      /characters/,
    )
    const lacking = await mcp.request(
      'tools/call',
      {
        name: 'propose_change',
        arguments: { action: 'delete', reference: 'Observation/1', reason: 'Why' },
      },
      WRITER,
    )
    assert.equal(lacking.status, 403)
    assert.match(String(lacking.headers['www-authenticate']), /scope="patient\/Observation\.d"/)
    assert.equal(await countRows(), 0)
  })

  it('does not tell whether something outside of the grant exists (MCP-6)', async () => {
    for (const given of [
      { action: 'delete' },
      { action: 'patch', patch: RESOLVE },
      { action: 'update', resource: condition('ID', 'ann') },
    ]) {
      const say = async (id: string) => {
        const text = JSON.stringify({ ...given, reference: `Condition/${id}`, reason: 'Why' })
        const result = await mcp.call(
          'propose_change',
          JSON.parse(text.replaceAll('"ID"', `"${id}"`)),
          WRITER,
        )
        assert.equal(result.isError, true, id)
        return readText(result).replace(id, '')
      }
      assert.equal(await say('of-ben'), await say('of-nobody'), given.action)
    }
    assert.equal(await countRows(), 0)
  })

  it('is recorded as a trial and not as a change, under the patient (PROPOSAL-3)', async () => {
    await mcp.call('propose_change', patchOf('Condition/of-ann'), WRITER)
    const [record] = await mcp.listRecords(1)
    assert.deepEqual(
      [record?.interaction, record?.method, record?.request, record?.status, record?.patient_id],
      ['operation', 'POST', 'Condition/of-ann/$validate?mode=patch', 200, 'ann'],
    )
    assert.deepEqual(JSON.parse(record?.details ?? ''), { tool: 'propose_change' })
    assert.equal(record?.decided_by, 'patient/Condition.cruds')
    await clear()
  })

  it('refuses, in words, more open proposals than a grant and a person may have (PROPOSAL-4)', async () => {
    for (let at = 0; at < OPEN_OF_GRANT; at += 1)
      assert.equal((await mcp.call('propose_change', patchOf('Condition/of-ann'), WRITER)).isError, undefined)
    const result = await mcp.call('propose_change', patchOf('Condition/of-ann'), WRITER)
    assert.match(readText(result), /There are 20 open proposals, which is the most/)
    await proposeByGrants('app', OPEN_OF_CLIENT)
    await proposeByGrants('second', OPEN_OF_USER - OPEN_OF_CLIENT)
    assert.equal(await countRows(), OPEN_OF_USER)
    const more = { ...WRITER, client_id: 'third', jti: 'third.a' }
    assert.match(
      readText(await mcp.call('propose_change', patchOf('Condition/of-ann'), more)),
      /There are 100 open/,
    )
    const another = { ...WRITER, sub: 'c-2', jti: 'grant-2.b' }
    assert.equal((await mcp.call('propose_change', patchOf('Condition/of-ann'), another)).isError, undefined)
    await clear()
  })

  it('keeps room for the other assistants of a person, whatever the grants of one (PROPOSAL-4)', async () => {
    await proposeByGrants('greedy', OPEN_OF_CLIENT)
    const other = { ...WRITER, client_id: 'modest', jti: 'modest.a' }
    assert.equal((await mcp.call('propose_change', patchOf('Condition/of-ann'), other)).isError, undefined)
    await clear()
  })
})

describe('list_proposals', () => {
  it('never exceeds 20,000 tokens (MCP-7)', async () => {
    const proposals = createProposals(createSealer('secret'))
    const change = { action: 'delete', type: 'Condition', id: 'x'.repeat(64), reason: 'x' } as const
    const proposer = { userId: 'c-1', clientId: 'app', patient: 'ann' }
    for (let at = 0; at < 50; at++) {
      const times = { now: 0, expiresAt: Number.MAX_SAFE_INTEGER }
      const id = await proposals.add(mcp.store.db, change, { ...proposer, grantId: `g${at}` }, times)
      assert(!isFailure(id))
      const outcome = { reason: 'No. '.repeat(REASON_CHARACTERS / 4) }
      await proposals.change(mcp.store.db, id, { from: 'open', to: 'rejected', now: 1, outcome })
    }
    const result = await mcp.call('list_proposals', {}, { ...WRITER, sub: 'c-1', client_id: 'app' })
    const { proposals: listed } = result.structuredContent as { proposals: readonly object[] }
    assert.equal(listed.length, 50)
    assert.ok(JSON.stringify(result).length <= 80_000)
    await clear()
  })

  it('shows an assistant only its own, for this person and patient (PROPOSAL-5)', async () => {
    await mcp.call('propose_change', patchOf('Condition/of-ann'), WRITER)
    for (const other of [
      { ...WRITER, client_id: 'other' },
      { ...WRITER, sub: 'c-2' },
      { ...WRITER, patient: 'ben' },
    ])
      assert.deepEqual((await mcp.call('list_proposals', {}, other)).structuredContent, { proposals: [] })
    await clear()
  })
})
