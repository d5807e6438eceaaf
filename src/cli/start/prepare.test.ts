import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { makeCertificate } from '../../../test/support/certificate.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import {
  createAuditor,
  createEventIds,
  measureAuditLag,
  type RefusedRecord,
  startFeed,
} from '../../audit/index.ts'
import { readRecord } from '../../audit/testing/records.ts'
import { readConfiguration } from '../../config/index.ts'
import type { Store } from '../../store/index.ts'
import { createFeedSender, createSyslog } from './prepare.ts'

const ids = createEventIds(Buffer.alloc(32))

interface Sent {
  readonly meta: { readonly source: string }
  readonly outcomeDesc: string
}

interface Bundle {
  readonly type: string
  readonly entry: readonly { readonly resource: Sent; readonly request: object }[]
}

const closing: (() => unknown)[] = []
after(() => Promise.all(closing.map(close => close())))

/** A FHIR server that stores AuditEvents. `respond` chooses the status, and may wait. */
async function openRepository(respond: (bundle: Bundle) => number | Promise<number> = () => 200) {
  const bundles: Bundle[] = []
  const headers: (string | undefined)[] = []
  const server: Server = createServer(async (request, reply) => {
    const bundle: Bundle = JSON.parse(Buffer.concat(await request.toArray()).toString())
    const status = await respond(bundle)
    if (status === 200) bundles.push(bundle)
    headers.push(request.headers.authorization)
    reply.writeHead(status).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/r4`
  const received = () => bundles.flatMap(({ entry }) => entry.map(({ resource }) => resource.outcomeDesc))
  return { url, bundles, headers, received }
}

const readSettings = (env: Record<string, string>) => readConfiguration(env, '/nowhere').settings

async function addRecords(store: Store, first: number, count: number): Promise<readonly string[]> {
  const names = Array.from({ length: count }, (_, at) => `event ${first + at}`)
  await createAuditor({ store }).record(
    ...names.map(reason => ({
      at: 1000,
      server: 'fhir' as const,
      kind: 'fhir' as const,
      interaction: 'read' as const,
      allowed: true,
      status: 200,
      reason,
      patient: 'juniper',
    })),
  )
  return names.map(name => `Allowed (200): ${name}`)
}

async function waitUntil(isDone: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isDone()); tries++) {
    if (tries > 1500) assert.fail('It takes too long')
    await pause(10)
  }
}

const quiet = { everyMs: 20, onError: () => {}, onRefused: () => {} }

eachDatabase((name, open, create) => {
  describe('the feed of audit records', () => {
    it('sends each record in order, in transactions of at most 100, by one of two processes (AUDIT-19)', async () => {
      const store = await open()
      const repository = await openRepository()
      const env = { SMART_AUDIT_FEED_URL: repository.url, SMART_AUDIT_FEED_TOKEN: 'secret-1' }
      const send = await createFeedSender(readSettings(env), ids)
      const start = () => startFeed(store, { ...quiet, name: 'feed', send })
      const first = await addRecords(store, 0, 250)
      const feeds = [start(), start()]
      await waitUntil(async () => (await measureAuditLag(store, ['feed']))[1]?.waiting === 0)
      await Promise.all(feeds.map(feed => feed.stop()))
      assert.deepEqual(repository.received(), first)
      assert.ok(repository.bundles.every(({ type, entry }) => type === 'transaction' && entry.length <= 100))
      assert.ok(repository.headers.every(header => header === 'Bearer secret-1'))
      const text = JSON.stringify(repository.bundles[0]?.entry[0])
      assert.match(text, /"source":"http:\/\/localhost:8080\/fhir\/AuditEvent\/[0-9a-f]{32}"/)
      assert.match(text, /"reference":"http:\/\/localhost:8080\/fhir\/Patient\/juniper"/)
      assert.match(text, /"request":\{"method":"POST","url":"AuditEvent"\}/)
      const later = await addRecords(store, 250, 3)
      const again = start()
      await waitUntil(() => repository.received().length >= 253)
      await again.stop()
      assert.deepEqual(repository.received(), [...first, ...later])
    })

    it('waits during an outage, and then sends everything (AUDIT-19)', async () => {
      const store = await open()
      const statuses = [503, 401, 200]
      const repository = await openRepository(() => statuses.shift() ?? 200)
      const send = await createFeedSender(readSettings({ SMART_AUDIT_FEED_URL: repository.url }), ids)
      const names = await addRecords(store, 0, 3)
      const errors: unknown[] = []
      const feed = startFeed(store, { ...quiet, name: 'feed', send, onError: error => errors.push(error) })
      await waitUntil(() => errors.length === 1)
      const [, lag] = await measureAuditLag(store, ['feed'])
      assert.equal(lag?.oldestAt, 1000)
      assert.ok(lag.waiting >= 3)
      await waitUntil(() => repository.received().length >= 3)
      await feed.stop()
      assert.deepEqual(repository.received(), names)
      assert.deepEqual(errors.map(String), [
        `Error: Cannot send audit records to ${repository.url}: HTTP 503`,
        `Error: Cannot send audit records to ${repository.url}: HTTP 401`,
      ])
    })

    it('logs and stores a refused record, sends the others, and sends it again later (AUDIT-20)', async () => {
      const store = await open()
      let isStrict = true
      const isBad = ({ resource }: Bundle['entry'][number]) => /event 4$/.test(resource.outcomeDesc)
      const repository = await openRepository(({ entry }) => (isStrict && entry.some(isBad) ? 422 : 200))
      const send = await createFeedSender(readSettings({ SMART_AUDIT_FEED_URL: repository.url }), ids)
      const names = await addRecords(store, 0, 10)
      const refused: RefusedRecord[] = []
      const options = {
        name: 'feed',
        send,
        onRefused: (more: readonly RefusedRecord[]) => refused.push(...more),
      }
      const start = () => startFeed(store, { ...quiet, ...options })
      const countRefused = async () => (await measureAuditLag(store, ['feed']))[1]?.refused
      const feed = start()
      await waitUntil(async () => (await countRefused()) === 1)
      await feed.stop()
      assert.deepEqual(repository.received(), names.toSpliced(4, 1))
      assert.deepEqual(
        refused.map(({ reason }) => reason),
        ['HTTP 422'],
      )
      const second = start()
      await waitUntil(() => refused.length === 2)
      await second.stop()
      isStrict = false
      const third = start()
      await waitUntil(async () => (await countRefused()) === 0)
      await third.stop()
      assert.deepEqual(repository.received().toSorted(), names.toSorted())
    })

    if (name === 'SQLite')
      it('loses nothing if its process is killed (AUDIT-19)', async () => {
        const url = await create()
        const { openStore } = await import('../../store/index.ts')
        const store = await openStore(url)
        closing.push(() => store.close())
        const names = await addRecords(store, 0, 150)
        let isBlocked = false
        const repository = await openRepository(({ entry }) => {
          isBlocked = entry.length < 100 && !killed
          return isBlocked ? new Promise(() => {}) : 200
        })
        let killed = false
        const script = fileURLToPath(new URL('../../audit/testing/feed-process.ts', import.meta.url))
        const child = spawn(process.execPath, [script, url, repository.url], { stdio: 'inherit' })
        await waitUntil(() => isBlocked)
        child.kill('SIGKILL')
        await once(child, 'exit')
        killed = true
        const send = await createFeedSender(readSettings({ SMART_AUDIT_FEED_URL: repository.url }), ids)
        // After the lease of the killed process.
        const feed = startFeed(store, { ...quiet, name: 'feed', send, clock: () => Date.now() + 60_000 })
        await waitUntil(() => repository.received().length >= 150)
        await feed.stop()
        assert.deepEqual(repository.received(), names)
      })
  })
})

describe('audit records over syslog', () => {
  it('are RFC 5424 messages over TLS, sent again if the connection breaks, and only to a trusted receiver (AUDIT-21)', async () => {
    const { cert, key } = makeCertificate()
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-syslog-'))
    closing.push(() => rmSync(folder, { recursive: true }))
    const ca = join(folder, 'ca.pem')
    writeFileSync(ca, cert)
    const messages: string[] = []
    let breaks = 1
    const receiver = createTlsServer({ cert, key }, async socket => {
      if (breaks-- > 0) return socket.destroy()
      messages.push(...parseFrames(Buffer.concat(await socket.toArray())))
    })
    receiver.listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    closing.push(() => receiver.close())
    const { port } = receiver.address() as AddressInfo
    const env = { SMART_AUDIT_SYSLOG_URL: `tls://localhost:${port}` }
    const record = { ...readRecord, reason: 'Größe 🙂' }
    const { signal } = new AbortController()
    await assert.rejects(createSyslog(readSettings(env), ids)([record], signal), /certificate/)
    const send = createSyslog(readSettings({ ...env, SMART_AUDIT_TLS_CA: ca }), ids)
    breaks = 1
    await assert.rejects(send([record, record], signal))
    assert.deepEqual(await send([record, { ...record, allowed: false, status: 403 }], signal), [])
    const [allowed = '', refused = ''] = messages
    assert.equal(messages.length, 2)
    assert.match(allowed, /^<85>1 2026-11-13T14:04:07\.412Z localhost sallyport - AuditEvent - \{"/)
    assert.match(refused, /^<84>1 /)
    const event = JSON.parse(allowed.slice(allowed.indexOf('{')))
    assert.equal(event.resourceType, 'AuditEvent')
    assert.match(event.outcomeDesc, /Größe 🙂/)
  })
})

/** RFC 5425: `MSG-LEN SP SYSLOG-MSG`, with the length in octets. */
function parseFrames(data: Buffer): readonly string[] {
  if (data.length === 0) return []
  const space = data.indexOf(' ')
  const end = space + 1 + Number(data.subarray(0, space).toString())
  return [data.subarray(space + 1, end).toString(), ...parseFrames(data.subarray(end))]
}
