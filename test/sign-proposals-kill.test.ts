/** A server that ends between the write at the FHIR server and its own record of it: the next one finds what was written. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { readForm } from '../src/auth/testing/read-form.ts'
import { startUpstream, type UpstreamProcess } from '../src/backends/upstream/testing/start-gateway.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { HttpUser } from './support/http-user.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from './support/started.ts'

let upstream: UpstreamProcess
let proxy: Server
let place: Place
let servers: Started
/** Called when the upstream has written a transaction, before the answer. */
let onWritten: (() => void) | undefined

/** Passes requests on to the upstream. */
async function startProxy(): Promise<string> {
  proxy = createServer(async (incoming, outgoing) => {
    const { method, url, headers } = incoming
    const body = await buffer(incoming)
    const sent = request(new URL(url ?? '', upstream.url), { method, headers }, async answer => {
      const answered = await buffer(answer)
      if (!onWritten || !body.includes('"transaction"'))
        return outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(answered)
      onWritten()
      return outgoing.destroy()
    })
    sent.on('error', () => outgoing.destroy())
    sent.end(body)
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  return `http://localhost:${(proxy.address() as AddressInfo).port}${new URL(upstream.url).pathname}`
}

async function start(): Promise<void> {
  servers = startProcess(['start'], place)
  await servers.printed(/is running/)
}

before(async () => {
  upstream = await startUpstream()
  place = await newPlace({ SMART_FHIR_UPSTREAM_URL: await startProxy() })
  const sample = [...samplePatients({ now: Date.now(), count: 1 })]
  writeFileSync(join(place.folder, 'sample.ndjson'), sample.map(it => JSON.stringify(it)).join('\n'))
  const imported = await runProgram(['data', 'import', '--to', upstream.url, 'sample.ndjson'], place)
  assert.equal(imported.exitCode, 0, imported.stderr)
  await start()
  const added = await runProgram(
    [
      ...['client', 'add', '--id', 'scribe', '--public', '--redirect-uri', 'http://127.0.0.1/callback'],
      ...['--scope', 'openid fhirUser patient/*.cruds'],
    ],
    place,
  )
  assert.equal(added.exitCode, 0, added.stderr)
})
after(async () => {
  servers?.child.kill('SIGKILL')
  proxy?.closeAllConnections()
  proxy?.close()
  await upstream?.end()
  place?.remove()
})

async function propose(): Promise<string> {
  const resource = {
    resourceType: 'Condition',
    subject: { reference: 'Patient/patient-1' },
    clinicalStatus: {
      coding: [{ system: 'http://terminology.hl7.org/CodeSystem/condition-clinical', code: 'active' }],
    },
    code: { text: 'Cough' },
  }
  const given = { action: 'create', type: 'Condition', resource, reason: 'Heard' }
  const params = { name: 'propose_change', arguments: given }
  const { stdout, stderr } = await runProgram(
    ['mcp', '--client', 'scribe', '--patient', 'patient-1', '--scope', 'openid fhirUser patient/*.cruds'],
    place,
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`,
  )
  assert.notEqual(stdout, '', stderr)
  const { result } = JSON.parse(stdout)
  assert.ok(result?.structuredContent, stdout)
  return result.structuredContent.proposal
}

describe('a server that is killed while a proposal is written', () => {
  it('finds after its start that it was written, and writes it once (PROPOSAL-11)', async () => {
    const settings = { issuerUrl: place.authUrl, appUrl: place.appUrl }
    const account = { username: 'clinician', password: 'sallyport', name: '' }
    const user = new HttpUser({ settings, user: account })
    await user.signIn()
    const page = `${place.authUrl}/proposals/${await propose()}`
    const form = readForm(await (await user.open(page)).text())
    const killed = new Promise<void>(resolve => {
      onWritten = () => {
        servers.child.kill('SIGKILL')
        resolve()
      }
    })
    await assert.rejects(user.request(`${page}/sign`, { method: 'POST', body: form }))
    await killed
    await servers.ended()
    onWritten = undefined
    await start()
    assert.match(await (await user.open(page)).text(), /You signed it, and it was written to the record/)
    const again = await user.request(`${page}/sign`, { method: 'POST', body: form })
    assert.equal(again.status, 409)
    for (const type of ['Provenance', 'Condition']) {
      const found = await fetch(`${upstream.url}/${type}?_tag=${page.split('/').at(-1)}`)
      assert.equal(((await found.json()) as { readonly total: number }).total, 1, type)
    }
    const { stdout } = await runProgram(['audit', '--kind', 'proposal', '--json'], place)
    assert.equal(stdout.split('Allowed (200)').length - 1, 1, stdout)
  })
})
