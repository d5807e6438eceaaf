import { fixed } from './setting-row.ts'
import * as types from './setting-types.ts'

/** How PostgreSQL is used; SQLite has no need of these. */
export const databaseTable = {
  databasePoolSize: fixed({
    name: 'smart.server.database-pool-size',
    env: 'SMART_DATABASE_POOL_SIZE',
    type: types.wholeNumber(1, 1000),
    initial: '10',
    about:
      'PostgreSQL: maximum number of connections of each process. One more connection tests whether the database accepts writes.',
    of: settings => settings.database.poolSize,
  }),
  databaseConnectTimeoutSeconds: fixed({
    name: 'smart.server.database-connect-timeout-seconds',
    env: 'SMART_DATABASE_CONNECT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 60),
    initial: '5',
    about: 'PostgreSQL: how long a request waits for a new or free connection before it gets 503.',
    of: settings => settings.database.connectTimeoutSeconds,
  }),
  databaseStatementTimeoutSeconds: fixed({
    name: 'smart.server.database-statement-timeout-seconds',
    env: 'SMART_DATABASE_STATEMENT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 300),
    initial: '15',
    about: 'PostgreSQL: how long a statement may take before its request gets 503.',
    of: settings => settings.database.statementTimeoutSeconds,
  }),
}
