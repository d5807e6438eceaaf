import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it, mock } from 'node:test'
import { EXPORT_DOWNLOADS_WAITING, EXPORT_TURN_MS } from './limits.ts'
import { createDownloads } from './open-exports.ts'

const OWNER = { issuer: '', client: 'one' }
const OPEN = { destroyed: false, once: () => undefined }

/** The downloads of which a client has started two. */
async function startTwo() {
  const downloads = createDownloads()
  const first = await downloads.take(OWNER, OPEN)
  assert(first && (await downloads.take(OWNER, OPEN)))
  return { downloads, first }
}

describe('createDownloads', () => {
  it('lets a client have two downloads at a time, and others their own; further ones take turns (EXPORT-9)', async () => {
    const { downloads, first } = await startTwo()
    assert(await downloads.take({ issuer: 'https://other', client: 'one' }, OPEN))
    const order: string[] = []
    const take = async (name: string) => {
      const release = await downloads.take(OWNER, OPEN)
      order.push(name)
      return release
    }
    const [third, fourth] = [take('third'), take('fourth')]
    first()
    const release = await third
    assert.deepEqual(order, ['third'])
    release?.()
    assert(await fourth)
  })

  it('ends the wait of a client that leaves, which makes room for another download (EXPORT-9)', async () => {
    const { downloads, first } = await startTwo()
    const leaving = Array.from({ length: EXPORT_DOWNLOADS_WAITING }, () =>
      Object.assign(new EventEmitter(), { destroyed: false }),
    )
    const waiting = leaving.map(connection => downloads.take(OWNER, connection))
    assert.equal(await downloads.take(OWNER, OPEN), undefined)
    for (const connection of leaving) connection.emit('close')
    assert((await Promise.all(waiting)).every(it => it === undefined))
    assert.equal(await downloads.take(OWNER, { ...OPEN, destroyed: true }), undefined)
    const next = downloads.take(OWNER, OPEN)
    first()
    assert(await next)
  })

  it('refuses a download whose turn does not come, and those beyond a number (EXPORT-9)', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const { downloads, first } = await startTwo()
      const waiting = Array.from({ length: EXPORT_DOWNLOADS_WAITING }, () => downloads.take(OWNER, OPEN))
      assert.equal(await downloads.take(OWNER, OPEN), undefined)
      mock.timers.tick(EXPORT_TURN_MS)
      assert((await Promise.all(waiting)).every(it => it === undefined))
      first()
      assert(await downloads.take(OWNER, OPEN))
    } finally {
      mock.timers.reset()
    }
  })
})
