import { resolve } from 'node:path'
import { defineDerived, defineFixed } from './setting-row.ts'
import * as types from './setting-types.ts'

export const databaseTable = {
  databaseUrl: defineDerived({
    name: 'smart.server.database-url',
    env: 'SMART_DATABASE_URL',
    type: types.databaseUrl,
    otherwise: '`sqlite:<data folder>/sallyport.db`',
    about: 'Database of clinicians, clients, keys, tokens, sessions and audit records.',
    hasPassword: true,
    derive: ({ dataDir }) => `sqlite:${resolve(dataDir, 'sallyport.db')}`,
  }),
  'database.poolSize': defineFixed({
    name: 'smart.server.database-pool-size',
    env: 'SMART_DATABASE_POOL_SIZE',
    type: types.wholeNumber(1, 1000),
    initial: '10',
    about:
      'PostgreSQL: maximum number of connections of each process. One more connection tests whether the database accepts writes.',
  }),
  'database.connectTimeoutSeconds': defineFixed({
    name: 'smart.server.database-connect-timeout-seconds',
    env: 'SMART_DATABASE_CONNECT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 60),
    initial: '5',
    about: 'PostgreSQL: how long a request waits for a new or free connection before it gets 503.',
  }),
  'database.statementTimeoutSeconds': defineFixed({
    name: 'smart.server.database-statement-timeout-seconds',
    env: 'SMART_DATABASE_STATEMENT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 300),
    initial: '15',
    about: 'PostgreSQL: how long a statement may take before its request gets 503.',
  }),
}
