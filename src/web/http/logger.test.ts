import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLogger, logOutages, serializeError } from './index.ts'

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'
const TOKEN = 'q3vN0mY8yYxv1d5l2iZ0m3nq0m1c9a8b7c6d5e4f3g2'

describe('serializeError', () => {
  it('keeps type, message, code and causes, and drops other properties', () => {
    const cause = Object.assign(new TypeError(`bad ${JWT}`), { response: { body: TOKEN } })
    const error = Object.assign(new Error('Cannot fetch', { cause }), {
      code: 'E_FETCH',
      request: { headers: TOKEN },
    })
    const logged = serializeError(error)
    assert.equal(logged.type, 'Error')
    assert.equal(logged.code, 'E_FETCH')
    assert.equal(logged.cause?.type, 'TypeError')
    assert.equal(logged.cause?.message, 'bad [token]')
    assert.doesNotMatch(JSON.stringify(logged), new RegExp(`${TOKEN}|eyJ`))
  })

  it('accepts a value that is not an Error', () => {
    assert.deepEqual(serializeError('code=1'), { type: 'string', message: 'code=[secret]' })
    assert.equal(serializeError(undefined).type, 'undefined')
  })

  it('stops at an error that is its own cause', () => {
    const error = new Error('round')
    error.cause = error
    assert.ok(JSON.stringify(serializeError(error)).length > 0)
  })
})

describe('createLogger', () => {
  it('redacts secrets by name on three levels (HTTP-7)', () => {
    let log = ''
    const destination = {
      write(text: string) {
        log += text
      },
    }
    const logger = createLogger({ destination })
    logger.info(
      { password: 'p1', a: { authorization: 'p2', b: { refresh_token: 'p3' } }, headers: { x: 'p4' } },
      'm',
    )
    assert.doesNotMatch(log, /p1|p2|p3|p4/)
    assert.equal(JSON.parse(log).msg, 'm')
  })

  it('writes the level by name and the time as ISO 8601', () => {
    let log = ''
    const destination = {
      write(text: string) {
        log += text
      },
    }
    createLogger({ level: 'warn', destination }).warn('careful')
    assert.equal(JSON.parse(log).level, 'warn')
    assert.match(JSON.parse(log).time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  })

  it('writes nothing below its level', () => {
    let log = ''
    const destination = {
      write(text: string) {
        log += text
      },
    }
    createLogger({ level: 'warn', destination }).info('chatter')
    assert.equal(log, '')
  })
})

describe('logOutages', () => {
  it('logs each cause of an outage once, then the number of failures once a minute (STORE-6)', () => {
    const logged: unknown[] = []
    let now = 0
    const report = logOutages(
      ({ err, failed }) => logged.push(failed ?? String(err)),
      () => now,
    )
    const fail = (at: number, cause: string) => {
      now = at
      report(new Error(cause))
    }
    for (let at = 0; at <= 60_000; at += 2_000) fail(at, 'refused')
    fail(61_000, 'a seal was changed')
    fail(62_000, 'refused')
    fail(200_000, 'refused')
    assert.deepEqual(logged, ['Error: refused', 30, 'Error: a seal was changed', 'Error: refused'])
  })
})
