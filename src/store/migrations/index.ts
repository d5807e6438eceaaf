import type { Migration } from '../migrate.ts'
import { tables } from './0001-tables.ts'
import { clientApproval } from './0002-client-approval.ts'
import { auditRepeats } from './0003-audit-repeats.ts'
import { clientOrigins } from './0004-client-origins.ts'
import { launchAndSuccessorIndexes } from './0005-launch-and-successor-indexes.ts'
import { olderClients } from './0006-older-clients.ts'
import { loginUse } from './0007-login-use.ts'
import { auditDelivery } from './0008-audit-delivery.ts'
import { limitsOfStrangers } from './0009-limits-of-strangers.ts'
import { launchesOfNetworks } from './0010-launches-of-networks.ts'
import { auditSearchAndSweep } from './0011-audit-search-and-sweep.ts'
import { sessionsOfABrowser } from './0015-sessions-of-a-browser.ts'
import { recentUse } from './0016-recent-use.ts'
import { relatedPersons } from './0017-related-persons.ts'
import { loginProviders } from './0018-login-providers.ts'
import { lab } from './0020-lab.ts'
import { auditDetails } from './0021-audit-details.ts'
import { administration } from './0024-administration.ts'
import { auditSeals } from './0026-audit-seals.ts'
import { auditFeeds } from './0027-audit-feeds.ts'
import { pendingSignInExpiry } from './0028-pending-sign-in-expiry.ts'
import { auditQueue } from './0031-audit-queue.ts'
import { auditQueuePosition } from './0032-audit-queue-position.ts'
import { reservedLoginAttempts } from './0040-reserved-login-attempts.ts'
import { auditKey } from './0041-audit-key.ts'
import { auditLinks } from './0042-audit-links.ts'
import { accessThatEnds } from './0043-access-that-ends.ts'
import { launchExtensions } from './0044-launch-extensions.ts'

/** Every migration, in the order in which it is applied. */
export const migrations: readonly Migration[] = [
  tables,
  clientApproval,
  auditRepeats,
  clientOrigins,
  launchAndSuccessorIndexes,
  olderClients,
  loginUse,
  auditDelivery,
  limitsOfStrangers,
  launchesOfNetworks,
  auditSearchAndSweep,
  sessionsOfABrowser,
  recentUse,
  relatedPersons,
  loginProviders,
  lab,
  auditDetails,
  administration,
  auditSeals,
  auditFeeds,
  pendingSignInExpiry,
  auditQueue,
  auditQueuePosition,
  reservedLoginAttempts,
  auditKey,
  auditLinks,
  accessThatEnds,
  launchExtensions,
]
