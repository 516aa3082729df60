/* SPDX-License-Identifier: Apache-2.0 */
/* wattmeter.h - includes all headers of the library; each explains its part. */
#ifndef WATTMETER_WATTMETER_H
#define WATTMETER_WATTMETER_H

#include "wattmeter/analysis.h"
#include "wattmeter/axis.h"
#include "wattmeter/cap.h"
#include "wattmeter/cap_search.h"
#include "wattmeter/comparison.h"
#include "wattmeter/doctor.h"
#include "wattmeter/energy.h"
#include "wattmeter/error.h"
#include "wattmeter/experiment.h"
#include "wattmeter/format.h"
#include "wattmeter/gpu.h"
#include "wattmeter/recording.h"
#include "wattmeter/region.h"
#include "wattmeter/repeat.h"
#include "wattmeter/report.h"
#include "wattmeter/source.h"
#include "wattmeter/trace.h"
#include "wattmeter/tracker.h"
#include "wattmeter/version.h"

#endif
