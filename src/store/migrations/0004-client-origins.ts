import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/**
 * The web origins of every client, so that a CORS preflight, which names an origin and no client, is a lookup; and the
 * clients that the portal lists, in its order.
 */
export const clientOrigins: Migration = {
  name: '0004-client-origins',
  async up(db) {
    await db.schema
      .createTable('client_origin')
      .addColumn('client_id', 'text', column =>
        column.notNull().references('client.client_id').onDelete('cascade'),
      )
      .addColumn('origin', 'text', column => column.notNull())
      .addPrimaryKeyConstraint('client_origin_key', ['client_id', 'origin'])
      .execute()
    await db.schema.createIndex('client_origin_origin').on('client_origin').column('origin').execute()
    await db.schema
      .createIndex('client_launchable')
      .on('client')
      .columns(['approved desc', 'name'])
      .where(sql<boolean>`launch_url is not null`)
      .execute()
    const clients = await db
      .selectFrom('client')
      .select(['client_id', 'redirect_uris', 'launch_url'])
      .execute()
    for (const { client_id, redirect_uris, launch_url } of clients) {
      const urls: unknown[] = [JSON.parse(redirect_uris), launch_url ?? []].flat()
      const origins = urls.flatMap(url => URL.parse(String(url))?.origin ?? []).filter(it => it !== 'null')
      for (const origin of new Set(origins))
        await db.insertInto('client_origin').values({ client_id, origin }).execute()
    }
  },
}
