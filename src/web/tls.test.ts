import assert from 'node:assert/strict'
import { get, type RequestOptions } from 'node:https'
import { describe, it } from 'node:test'
import { makeCertificate } from '../../test/support/certificate.ts'
import { createServer, listen } from './index.ts'

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
  it('serves https on every address, and asks browsers to stay with it, never below TLS 1.2', async () => {
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
    // Both sides can, as far as the client has a say: it is the server that refuses.
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
    await assert.rejects(fetchOver(`https://127.0.0.1:${port}/healthz`, cert, old), /alert protocol version/)
    await assert.rejects(fetch(`http://127.0.0.1:${port}/healthz`))
    await app.close()
  })
})
