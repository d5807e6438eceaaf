import assert from 'node:assert/strict'
import { Agent, get, type RequestOptions } from 'node:https'
import { after, before, describe, it } from 'node:test'
import { type ConnectionOptions, connect, getCiphers, type TLSSocket } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { makeCertificate } from '../../../test/support/certificate.ts'
import { createServer, listen, replaceCertificate } from './index.ts'

function fetchOver(
  url: string,
  ca: string,
  options: RequestOptions = {},
): Promise<{ status: number | undefined; hsts: string | undefined }> {
  return new Promise((resolve, reject) => {
    get(url, { ca, ...options }, response => {
      response.resume()
      resolve({ status: response.statusCode, hsts: response.headers['strict-transport-security'] })
    }).once('error', reject)
  })
}

describe('createServer with a certificate', () => {
  it('serves https on every address with HSTS and at least TLS 1.2 (HTTP-8)', async () => {
    const { cert, key } = makeCertificate()
    const app = await createServer({ name: 'auth', url: 'https://localhost:9000', tls: { cert, key } })
    const port = await listen(app, 0, ['127.0.0.2', '127.0.0.1'])
    assert.deepEqual(await fetchOver(`https://127.0.0.1:${port}/healthz`, cert), {
      status: 200,
      hsts: 'max-age=31536000',
    })
    await assert.rejects(
      fetchOver(`https://127.0.0.1:${port}/healthz`, makeCertificate().cert),
      /self-signed/,
    )
    // The client would accept it: the server refuses.
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
    await assert.rejects(fetchOver(`https://127.0.0.1:${port}/healthz`, cert, old), /alert protocol version/)
    await assert.rejects(fetch(`http://127.0.0.1:${port}/healthz`))
    await app.close()
  })
})

describe('replaceCertificate', () => {
  it('changes the certificate of new connections, and keeps those that are open (SETTING-12)', async () => {
    const [old, next] = [makeCertificate(), makeCertificate()]
    const app = await createServer({ name: 'auth', url: 'https://localhost:9000', tls: old })
    const url = `https://127.0.0.1:${await listen(app, 0, ['127.0.0.2', '127.0.0.1'])}/healthz`
    const kept = new Agent({ keepAlive: true, maxSockets: 1, ca: old.cert })
    await fetchOver(url, old.cert, { agent: kept })
    replaceCertificate(app, next)
    assert.equal((await fetchOver(url, old.cert, { agent: kept })).status, 200)
    assert.equal((await fetchOver(url, next.cert, { agent: false })).status, 200)
    await assert.rejects(fetchOver(url, old.cert, { agent: false }), /self-signed/)
    kept.destroy()
    await app.close()
  })
})

describe('the TLS of a server (BCP 195)', () => {
  const { cert, key } = makeCertificate()
  let app: FastifyInstance
  let port: number
  before(async () => {
    app = await createServer({ name: 'auth', url: 'https://localhost:9000', tls: { cert, key } })
    port = await listen(app, 0, ['127.0.0.1'])
  })
  after(() => app.close())

  const open = (options: ConnectionOptions): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, ca: cert, servername: 'localhost', ...options })
      socket.once('secureConnect', () => resolve(socket)).once('error', reject)
    })
  const only = (cipher: string) =>
    open({ maxVersion: 'TLSv1.2', ciphers: `${cipher}:@SECLEVEL=0` }).then(socket => socket.destroy())

  // The certificate has an EC key: suites with another kind of authentication cannot be chosen in any case.
  const isAccepted = (name: string) => /^ECDHE-ECDSA-.*(GCM|POLY1305)/.test(name)

  it('offers only AEAD suites with forward secrecy (HTTP-8)', async () => {
    for (const name of getCiphers().map(it => it.toUpperCase()))
      if (isAccepted(name)) await only(name)
      else if (!name.startsWith('TLS_')) await assert.rejects(only(name), name)
  })

  it('prefers TLS 1.3', async () => {
    const socket = await open({})
    assert.equal(socket.getProtocol(), 'TLSv1.3')
    socket.destroy()
  })

  it('does not renegotiate on request of a client', async () => {
    const socket = await open({ maxVersion: 'TLSv1.2' })
    const refused = await new Promise<Error | null>(resolve => {
      socket.on('error', resolve)
      socket.renegotiate({}, resolve)
    })
    assert.ok(refused instanceof Error)
    socket.destroy()
  })
})
