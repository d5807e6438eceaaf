import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { sallyport } from '../../../test/support/command-line.ts'

describe('sallyport settings', () => {
  it('prints every setting with its value and source', async () => {
    const { exitCode, stdout, stderr } = await sallyport(['settings'], {
      env: { SMART_ACCESS_TOKEN_TTL_SECONDS: '120' },
    })
    assert.equal(exitCode, 0)
    assert.equal(stderr, '')
    assert.match(stdout, /^smart\.server\.access-token-ttl-seconds: 120 +# SMART_ACCESS_TOKEN_TTL_SECONDS$/m)
    assert.match(
      stdout,
      /^smart\.server\.issuer-url: http:\/\/localhost:9000 +# default, or SMART_ISSUER_URL$/m,
    )
    assert.match(stdout, /^# smart\.server\.tls-cert: +# none, or SMART_TLS_CERT$/m)
  })

  it('prints in the format of the settings file', async () => {
    const { stdout } = await sallyport(['settings'])
    const file: unknown = parse(stdout)
    assert.equal((file as Record<string, unknown>)['smart.server.bind'], '127.0.0.1,::1')
  })

  it('masks secrets (SETTING-5)', async () => {
    const { stdout } = await sallyport(['settings'], {
      env: {
        SMART_SECRET: 'nobody may read this secret',
        SMART_SEED_CLINICIAN_PASSWORD: 'nor this',
        SMART_DATABASE_URL: 'postgres://me:nor-that@db.example/x',
      },
    })
    assert.doesNotMatch(stdout, /nobody|nor this|nor-that/)
    assert.match(stdout, /^smart\.server\.secret: "\*{8}" /m)
  })

  it('prints ignored settings and start problems on stderr', async () => {
    const { exitCode, stderr } = await sallyport(['settings'], {
      env: { SMART_TEAPOT: 'x', SMART_TLS_KEY: 'k' },
    })
    assert.equal(exitCode, 0)
    assert.match(stderr, /^Unknown variable SMART_TEAPOT is ignored$/m)
    assert.match(stderr, /^Cannot start with these settings: SMART_TLS_KEY needs SMART_TLS_CERT$/m)
  })
})
